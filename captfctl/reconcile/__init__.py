"""One reconcile pass of an object, step by step (specification 10)."""
