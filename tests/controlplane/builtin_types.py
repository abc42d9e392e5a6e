"""`make builtin-types`: write down what the embedded control plane knows of Kubernetes' own kinds.

The sources are the Kubernetes modules that `tests/controlplane/kubernetes/go.mod` pins. The OpenAPI
documents in them say which fields a type has, which are required and how lists merge. The Go types
say the rest: exact types, protobuf numbers, and which fields are written when nothing is set. Where
the two do not agree about a type's fields, nothing is written.

`captfctl/embedded/schemas/builtin.py` describes the file and reads it.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "captfctl/embedded/schemas/builtin.json"

KINDS = {
    ("", "v1"): (
        *("Binding", "ConfigMap", "Event", "Namespace", "Node", "Pod", "Secret"),
        "ServiceAccount",
    ),
    ("admissionregistration.k8s.io", "v1"): (
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ),
    ("apiextensions.k8s.io", "v1"): ("CustomResourceDefinition",),
    ("authentication.k8s.io", "v1"): ("SelfSubjectReview", "TokenRequest", "TokenReview"),
    ("authorization.k8s.io", "v1"): (
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ),
    ("batch", "v1"): ("Job",),
    ("coordination.k8s.io", "v1"): ("Lease",),
    ("events.k8s.io", "v1"): ("Event",),
    ("rbac.authorization.k8s.io", "v1"): (
        *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    ),
}
"""What is written down, by group and version, with all types that these kinds refer to."""
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OTHERS = (f"{META}.DeleteOptions",)

API_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
SPECIAL = {
    f"{META}.Time": "time",
    f"{META}.MicroTime": "microtime",
    f"{META}.FieldsV1": "fields",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "json",
    "io.k8s.api.authentication.v1.ExtraValue": "strings",
    "io.k8s.api.authorization.v1.ExtraValue": "strings",
    f"{API_EXTENSIONS}.JSON": "json",
    f"{API_EXTENSIONS}.JSONSchemaPropsOrArray": "schema-or-array",
    f"{API_EXTENSIONS}.JSONSchemaPropsOrBool": "schema-or-bool",
    f"{API_EXTENSIONS}.JSONSchemaPropsOrStringArray": "schema-or-strings",
}
"""Types with a JSON form of their own, under the names that the file gives them."""
SCALARS = {
    "string": "string",
    "bool": "bool",
    "int": "int32",
    "int32": "int32",
    "int64": "int64",
    "float64": "double",
}

STRUCT = re.compile(r"^type (\w+) struct ?\{(?:\n(.*?)^)?\}", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^type (\w+) ([\w.\[\]*]+)$", re.MULTILINE)
IMPORT = re.compile(r'^\t(?:(\w+) )?"(k8s\.io/[^"]+)"$', re.MULTILINE)
FIELD = re.compile(
    r"^\t(?:(?P<name>\w+)\s+)?(?P<type>[\w.\[\]*]+)\s+`(?P<tags>[^`]*)`", re.MULTILINE
)
TAG = re.compile(r'(\w+):"([^"]*)"')
PREFIX = "#/components/schemas/"


class SourceError(Exception):
    """The sources say something that this program does not understand."""


@cache
def module(path: str) -> Path:
    """Where the pinned version of a Go module is; it is downloaded when it is not there."""
    command = ["go", "mod", "download", "-json", path]
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        command, cwd=HERE / "kubernetes", env=environment, capture_output=True, check=True
    )
    return Path(json.loads(done.stdout)["Dir"])


def version() -> str:
    pinned = re.search(
        r"^\s*k8s\.io/kubernetes (v\S+)", (HERE / "kubernetes/go.mod").read_text(), re.MULTILINE
    )
    if pinned is None:
        raise SourceError("go.mod does not pin k8s.io/kubernetes")
    return pinned[1]


@dataclass(frozen=True)
class GoField:
    json: str
    type: str
    number: int
    embedded: bool
    omitempty: bool
    omitzero: bool


@dataclass
class Package:
    """The types of one Go package, by plain name, and what its files import, by alias."""

    name: str
    structs: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)

    def full(self, go_type: str) -> str:
        """The OpenAPI name of a type as this package's files write it."""
        alias, dot, plain = go_type.partition(".")
        return f"{self.imports[alias]}.{plain}" if dot else f"{self.name}.{go_type}"


@cache
def package(name: str) -> Package:
    """By its OpenAPI name: `io.k8s.api.core.v1` is the Go package k8s.io/api/core/v1."""
    first, *rest = name.removeprefix("io.k8s.").split(".")
    found = Package(name)
    folder = module(f"k8s.io/{first}").joinpath(*rest)
    for file in sorted(folder.glob("*.go")):
        if file.name.endswith("_test.go") or "generated" in file.name:
            continue
        text = file.read_text()
        found.structs |= {m[1]: m[2] or "" for m in STRUCT.finditer(text)}
        found.named |= {m[1]: m[2] for m in NAMED.finditer(text)}
        for alias, path in IMPORT.findall(text):
            dotted = "io." + path.replace("k8s.io/", "k8s.").replace("/", ".")
            found.imports[alias or path.rpartition("/")[2]] = dotted
    return found


def go_fields(full: str) -> Iterator[GoField]:
    """The fields of a struct as its Go source declares them."""
    home, _, plain = full.rpartition(".")
    for match in FIELD.finditer(package(home).structs[plain]):
        tags = dict(TAG.findall(match["tags"]))
        name, *options = tags["json"].split(",")
        number = int(tags["protobuf"].split(",")[1]) if "protobuf" in tags else 0
        embedded = match["name"] is None and not name
        yield GoField(
            name, match["type"], number, embedded, "omitempty" in options, "omitzero" in options
        )


def spelled(go_type: str, home: Package) -> str:
    """A Go type in the file's spelling: `*int32`, `[]string`, `map[string]quantity`."""
    for prefix in ("*", "[]"):
        if go_type.startswith(prefix):
            if go_type == "[]byte":
                return "bytes"
            return prefix + spelled(go_type.removeprefix(prefix), home)
    if go_type.startswith("map["):  # its keys are texts, of one type or another
        return "map[string]" + spelled(go_type.partition("]")[2], home)
    if go_type in SCALARS:
        return SCALARS[go_type]
    full = home.full(go_type)
    if full in SPECIAL:
        return SPECIAL[full]
    owner, _, plain = full.rpartition(".")
    if plain in package(owner).structs:
        return full
    if plain not in package(owner).named:
        raise SourceError(f"{home.name} uses {full}, of which nothing is known")
    return spelled(package(owner).named[plain], package(owner))


def always_written(declared: GoField, type_: str) -> bool:
    """Whether Go writes the field when nothing is set: a struct itself is never empty to it."""
    if declared.omitzero:
        return False
    struct = type_.startswith("io.") or type_ in ("time", "microtime")
    return struct or not declared.omitempty


def described(full: str, published: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A type as the file holds it, and the types it refers to."""
    schema = published[full]
    properties = schema.get("properties", {})
    fields: dict[str, Any] = {}
    for declared, within, home in flattened(full):
        type_ = spelled(declared.type, home)
        entry: dict[str, Any] = {"type": type_}
        if declared.number:
            entry["number"] = declared.number
        if within:
            entry["within"] = within
        if always_written(declared, type_):
            entry["always"] = True
        fields[declared.json] = entry | openapi_facts(properties.get(declared.json, {}))
    if set(fields) != set(properties):
        raise SourceError(f"{full}: {sorted(set(fields) ^ set(properties))} in one source only")
    for name in schema.get("required", ()):
        fields[name]["required"] = True
    result: dict[str, Any] = {"fields": dict(sorted(fields.items()))}
    if schema.get("x-kubernetes-map-type") == "atomic":
        result["atomic"] = True
    referred = [entry["type"].rpartition("]")[2].lstrip("*") for entry in fields.values()]
    return result, [name for name in referred if name.startswith("io.")]


def flattened(full: str) -> Iterator[tuple[GoField, tuple[int, ...], Package]]:
    """A struct's fields, those of embedded structs with the numbers of the messages around them."""
    home = package(full.rpartition(".")[0])
    for declared in go_fields(full):
        if not declared.embedded:
            yield declared, (), home
            continue
        for below, within, owner in flattened(home.full(declared.type)):
            if declared.number:
                yield below, (declared.number, *within), owner
            else:  # apiVersion and kind: a protobuf body has them in its envelope
                yield replace(below, number=0), (), owner


LIST = {
    "x-kubernetes-list-type": "list",
    "x-kubernetes-list-map-keys": "keys",
    "x-kubernetes-patch-merge-key": "mergeKey",
    "x-kubernetes-patch-strategy": "strategy",
}


def openapi_facts(schema: dict[str, Any]) -> dict[str, Any]:
    facts = {ours: schema[theirs] for theirs, ours in LIST.items() if theirs in schema}
    if schema.get("x-kubernetes-map-type") == "atomic":
        facts["atomic"] = True
    if schema.get("default"):  # {} and "" are what an absent field counts as anyway
        facts["default"] = schema["default"]
    return facts


def documents() -> dict[str, Any]:
    """The schemas of all OpenAPI documents, by name."""
    folder = module("k8s.io/kubernetes") / "api/openapi-spec/v3"
    schemas: dict[str, Any] = {}
    for group, version in KINDS:
        name = f"apis__{group}__{version}" if group else f"api__{version}"
        published = json.loads((folder / f"{name}_openapi.json").read_text())
        schemas |= published["components"]["schemas"]
    return schemas


def collect() -> dict[str, Any]:
    """Every type, by its OpenAPI name."""
    published = documents()
    kinds = {
        (kind["group"], kind["version"], kind["kind"]): name
        for name, schema in published.items()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    }
    wanted = {(group, version, kind) for (group, version), some in KINDS.items() for kind in some}
    if lacking := wanted - set(kinds):
        raise SourceError(f"no document has {sorted(lacking)}")
    types: dict[str, Any] = {}
    todo = [*OTHERS, *(kinds[kind] for kind in wanted)]
    while todo:
        name = todo.pop()
        if name not in types:
            types[name], referred = described(name, published)
            todo += referred
    for kind in wanted:
        types[kinds[kind]] = {"kind": list(kind), **types[kinds[kind]]}
    return dict(sorted(types.items()))


def text() -> str:
    """The file: one line for each type."""
    lines = [
        f"{json.dumps(n)}: {json.dumps(t, separators=(',', ':'))}" for n, t in collect().items()
    ]
    return f'{{"kubernetes": "{version()}", "types": {{\n' + ",\n".join(lines) + "\n}}\n"


def main() -> int:
    try:
        TARGET.write_text(text())
    except (SourceError, OSError, subprocess.CalledProcessError) as problem:
        print(f"Error: the built-in types cannot be read: {problem}", file=sys.stderr)
        return 1
    print(TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())
