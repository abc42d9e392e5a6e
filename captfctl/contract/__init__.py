"""The module contract: inputs, rendering, hashing, outputs."""
