"""From an operation to a Job and back: pod, leases, bookkeeping, pruning."""
