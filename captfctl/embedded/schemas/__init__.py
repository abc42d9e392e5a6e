"""What is known about the fields of objects.

Kubernetes' own kinds come from `builtin.json`, custom kinds from their CustomResourceDefinitions.
One class, `Node`, stands for both wherever objects are checked, merged or applied.
"""

from captfctl.embedded.schemas.compiling import compile_schema, node_of
from captfctl.embedded.schemas.node import ListType, Node, Rule, Schema

__all__ = ["ListType", "Node", "Rule", "Schema", "compile_schema", "node_of"]
