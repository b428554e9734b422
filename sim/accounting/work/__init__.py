"""What steps did for single requests: verifications of drafts, work in vain, and when each step was planned."""
