"""Write `schemas.json` anew from the OpenAPI documents that Kubernetes publishes.

    python -m captfctl.embedded.apiserver.builtin.refresh …/kubernetes/api/openapi-spec/v3

Only the structure of the kinds that the embedded API server serves is kept: field names, types,
required fields, and how lists merge. Texts are left out.
"""

import json
import sys
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

DOCUMENTS = {
    "api__v1_openapi.json": (
        "Namespace",
        "Secret",
        "ConfigMap",
        "Pod",
        "Event",
        "ServiceAccount",
        "Node",
        "Binding",
    ),
    "apis__batch__v1_openapi.json": ("Job",),
    "apis__coordination.k8s.io__v1_openapi.json": ("Lease",),
    "apis__events.k8s.io__v1_openapi.json": ("Event",),
    "apis__rbac.authorization.k8s.io__v1_openapi.json": (
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
    ),
    "apis__apiextensions.k8s.io__v1_openapi.json": ("CustomResourceDefinition",),
}
KEPT = (
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-unions",
)
PREFIX = "#/components/schemas/"


def compact(schema: Schema) -> Schema:
    """The schema without texts and defaults, its references as plain names."""
    ref = schema.get("$ref") or next((s["$ref"] for s in schema.get("allOf", ())), "")
    kept = {key: schema[key] for key in KEPT if key in schema}
    if ref:
        kept["$ref"] = ref.removeprefix(PREFIX)
    default = schema.get("default")
    if default:  # a field that identifies a list item may be left out when it has one
        kept["default"] = default
    if "oneOf" in schema:  # a quantity, an int-or-string: several JSON types, any is fine
        kept["oneOf"] = schema["oneOf"]
    if "properties" in schema:
        kept["properties"] = {n: compact(s) for n, s in sorted(schema["properties"].items())}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            kept[key] = compact(schema[key])
    return kept


def references(schema: Any) -> set[str]:
    """The names of all schemas that this one refers to."""
    if isinstance(schema, list):
        return set().union(*map(references, schema))
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
    return own.union(*map(references, schema.values()))


def collect(folder: Path) -> dict[str, Schema]:
    """Every schema that a served kind needs, by its name."""
    found: dict[str, Schema] = {}
    for file, kinds in DOCUMENTS.items():
        published = json.loads((folder / file).read_text())["components"]["schemas"]
        todo = [
            name
            for name, schema in published.items()
            if any(
                gvk["kind"] in kinds and file.startswith(_document(gvk))
                for gvk in schema.get("x-kubernetes-group-version-kind", ())
            )
        ]
        while todo:
            name = todo.pop()
            if name not in found:
                found[name] = compact(published[name])
                todo += references(found[name])
    return dict(sorted(found.items()))


def _document(gvk: Schema) -> str:
    group = gvk["group"]
    return f"apis__{group}__{gvk['version']}_" if group else f"api__{gvk['version']}_"


def main() -> None:
    schemas = collect(Path(sys.argv[1]))
    target = Path(__file__).with_name("schemas.json")
    lines = [f"{json.dumps(n)}: {json.dumps(s, separators=(',', ':'))}" for n, s in schemas.items()]
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
