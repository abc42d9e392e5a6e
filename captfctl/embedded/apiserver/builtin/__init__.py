"""Schemas of the built-in kinds that the embedded API server serves.

`schemas.json` holds the structure that Kubernetes publishes for them (`refresh.py` writes it):
OpenAPI v3 schemas by name, without texts; a reference is the plain name of another schema.
"""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

Schema = dict[str, Any]

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@cache
def schemas() -> dict[str, Schema]:
    """All schemas by name. Shared: read only."""
    text = Path(__file__).with_name("schemas.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Schema])


@cache
def _names() -> dict[tuple[str, str, str], str]:
    return {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, schema in schemas().items()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    }


def schema_name(group: str, version: str, kind: str) -> str:
    """The name of a kind's schema; empty when it is not a built-in kind."""
    return _names().get((group, version, kind), "")


_POD_SPEC: Schema = {"containers": None}
_EMPTY: dict[str, Schema] = {
    "CustomResourceDefinition": {"spec": {"names": {}}, "status": {}},
    "Event": {"involvedObject": {}, "regarding": {}, "source": {}},
    "Job": {"spec": {"template": {"metadata": {}, "spec": _POD_SPEC}}, "status": {}},
    "Lease": {"spec": {}},
    "Namespace": {"spec": {}, "status": {}},
    "Node": {"spec": {}, "status": {}},
    "Pod": {"spec": _POD_SPEC, "status": {}},
    "RoleBinding": {"roleRef": {}},
    "ClusterRoleBinding": {"roleRef": {}},
    "Role": {"rules": None},
    "ClusterRole": {"rules": None},
}


def empty(group: str, version: str, kind: str) -> Schema:
    """What an object of the kind consists of when nothing is set: nobody sets these parts."""
    return _EMPTY.get(kind, {}) if schema_name(group, version, kind) else {}
