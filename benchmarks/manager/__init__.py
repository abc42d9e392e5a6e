"""The manager on a real API server with many objects that have nothing to do."""
