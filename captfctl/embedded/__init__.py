"""The embedded control plane: a cluster for one machine."""
