"""The nouns: kinds, metadata keys, names, conditions. No I/O."""
