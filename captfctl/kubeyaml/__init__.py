"""YAML and JSON as Kubernetes' own programs read and write them: the one home of both formats.

- `documents(text, problems)` gives the documents of a text: plain values, and the `Place` of each
  field. kubectl gives the same values, or the text is refused with a `Problem` and its line.
- `to_yaml(document)` writes what everybody reads back as the same.
"""

from captfctl.kubeyaml.building import MAX_DEPTH, MAX_EXPANDED, Json, Parsed, Place, Problem
from captfctl.kubeyaml.documents import documents
from captfctl.kubeyaml.writing import to_yaml

__all__ = [
    "MAX_DEPTH",
    "MAX_EXPANDED",
    "Json",
    "Parsed",
    "Place",
    "Problem",
    "documents",
    "to_yaml",
]
