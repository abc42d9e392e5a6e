"""What installing captfctl on a cluster creates: kinds, permissions, the manager's workload."""
