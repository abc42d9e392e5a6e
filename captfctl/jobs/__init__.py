"""Jobs: built, started, watched, counted and pruned; the leases that keep them apart (11)."""
