"""From a log to a plan: how many GPUs of which kind bear its traffic within objectives, and how sure that is."""
