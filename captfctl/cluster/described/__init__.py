"""Objects described in YAML or JSON files: read, checked, and put into a store.

- `read(paths, registry, stdin=...)`: every object of the files, or `BadInput` with all violations.
- `Described`: one object with the place of each of its fields.
- `load_into(store, described)`: into an embedded store, as if a cluster had them.
"""

from captfctl.cluster.described.objects import BadInput, Described, DescribedSet, Violation

__all__ = ["BadInput", "Described", "DescribedSet", "Violation"]
