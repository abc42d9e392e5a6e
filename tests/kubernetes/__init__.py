"""The product on a real Kubernetes control plane with real Cluster API (`make test-kubernetes`)."""
