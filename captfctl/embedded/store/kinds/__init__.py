"""The kinds of Kubernetes that need more than `Typed`: one module per kind, or group of kinds."""
