"""Writes captfctl/embedded/store/builtin_types.json: the fields of Kubernetes' own kinds.

    python tests/store/make_builtin_types.py captfctl/embedded/store/builtin_types.json

The source is the installed `kubernetes` client, whose models list every field with its type; use
the client of the Kubernetes version to serve (34.1 for Kubernetes 1.34). Types are `string`,
`integer`, `number`, `boolean`, `bytes`, `time`, `micro`, `quantity`, `any`, `int-or-string`, the
name of another struct, `[T` for a list of T and `{T` for a map from text to T.
"""

import json
import sys
from pathlib import Path

import kubernetes.client.models as models

ROOTS = (
    "V1Namespace",
    "V1Secret",
    "V1ConfigMap",
    "V1Pod",
    "V1ServiceAccount",
    "V1Node",
    "V1Job",
    "V1Lease",
    "CoreV1Event",
    "EventsV1Event",
    "V1Role",
    "V1RoleBinding",
    "V1ClusterRole",
    "V1ClusterRoleBinding",
    "V1Binding",
    "V1CustomResourceDefinition",
)
PLAIN = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "bytes": "bytes",
    "datetime": "time",
    "object": "any",
}
MICRO = {"acquireTime", "renewTime", "eventTime", "lastObservedTime"}
QUANTITIES = {"limits", "requests", "capacity", "allocatable", "allocatedResources", "overhead"}
QUANTITY = {"sizeLimit", "divisor", "storage"}
BYTES = {("V1Secret", "data"), ("V1ConfigMap", "binaryData")}
INT_OR_STRING = {
    ("V1HTTPGetAction", "port"),
    ("V1TCPSocketAction", "port"),
    ("V1ServicePort", "targetPort"),
}


def token(owner: str, field: str, kind: str, wanted: list[str]) -> str:
    if kind.startswith(("list[", "List[")):
        return "[" + token(owner, field, kind[5:-1], wanted)
    if kind.startswith(("dict(str, ", "Dict[str, ")):
        if field in QUANTITIES:
            return "{quantity"
        if (owner, field) in BYTES:
            return "{bytes"
        return "{" + token(owner, field, kind[10:-1], wanted)
    if (owner, field) in INT_OR_STRING:
        return "int-or-string"
    if kind == "datetime" and field in MICRO:
        return "micro"
    if field == "caBundle":
        return "bytes"
    if kind == "str" and field in QUANTITY:
        return "quantity"
    if kind in PLAIN:
        return PLAIN[kind]
    wanted.append(kind)
    return kind


def main() -> None:
    wanted = list(ROOTS)
    types: dict[str, dict[str, str]] = {}
    while wanted:
        name = wanted.pop()
        if name in types:
            continue
        model = getattr(models, name)
        types[name] = {
            model.attribute_map[field]: token(name, model.attribute_map[field], kind, wanted)
            for field, kind in model.openapi_types.items()
        }
    text = json.dumps(dict(sorted(types.items())), separators=(",", ":"))
    Path(sys.argv[1]).write_text(text.replace("},", "},\n") + "\n")


if __name__ == "__main__":
    main()
