"""Objects described in YAML or JSON files: read, checked, and put into a store.

- `load(paths, store)` reads files, directories and standard input into an embedded store and
  returns the `DescribedSet`; all that is wrong with them is one `BadInput`, each violation with
  its file, line and field path.
- `scratch_store(clock, crds)` is such a store, in memory.
- `Described` is one object; `place(path)` tells the line of a field, for later complaints about it.
"""

from captfctl.embedded.described.loading import load, scratch_store
from captfctl.embedded.described.objects import BadInput, Described, DescribedSet, Violation

__all__ = ["BadInput", "Described", "DescribedSet", "Violation", "load", "scratch_store"]
