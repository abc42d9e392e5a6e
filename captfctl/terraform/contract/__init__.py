"""The contract between the manager and a module: inputs, rendering, hashes, outputs."""
