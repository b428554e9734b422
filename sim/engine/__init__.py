"""One engine: the scheduler, the state of its sequences, and the batches it plans."""
