"""The embedded API server: enough of the Kubernetes API for kubectl and other unchanged clients."""
