"""The controller process: caches, workers, leader election, probes, metrics."""
