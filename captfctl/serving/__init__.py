"""What a process needs to serve HTTP: a small server, and certificates."""
