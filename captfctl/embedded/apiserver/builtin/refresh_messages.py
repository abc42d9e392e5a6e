"""Write `messages.json` anew from the Go sources of Kubernetes' API types.

    python -m captfctl.embedded.apiserver.builtin.refresh_messages …/k8s.io VERSION

For each message of the kinds that clients send as protobuf: field number, JSON name, type. Types:
`string`, `bytes`, `bool`, `int`, `float`, the special ones below, or another message. `*` before
one: absent and zero differ. `[]`: repeated. `{}`: a map with text keys. Without a JSON name the
message's fields belong to the one around it.
"""

import json
import re
import sys
from pathlib import Path

PACKAGES = {
    "core": "api@{}/core/v1",
    "batch": "api@{}/batch/v1",
    "coordination": "api@{}/coordination/v1",
    "events": "api@{}/events/v1",
    "rbac": "api@{}/rbac/v1",
    "authentication": "api@{}/authentication/v1",
    "authorization": "api@{}/authorization/v1",
    "meta": "apimachinery@{}/pkg/apis/meta/v1",
}
ROOTS = (
    *(f"core.{kind}" for kind in ("Namespace", "Secret", "ConfigMap", "Pod", "Event", "Node")),
    *("core.ServiceAccount", "core.Binding", "batch.Job", "coordination.Lease", "events.Event"),
    *("rbac.Role", "rbac.RoleBinding", "rbac.ClusterRole", "rbac.ClusterRoleBinding"),
    *("authentication.TokenRequest", "authentication.TokenReview"),
    *("authentication.SelfSubjectReview", "authorization.SubjectAccessReview"),
    *("authorization.SelfSubjectAccessReview", "authorization.LocalSubjectAccessReview"),
    *("authorization.SelfSubjectRulesReview", "meta.DeleteOptions"),
)
ALIASES = {"v1": "core", "corev1": "core", "metav1": "meta"}
SCALARS = {
    "string": "string",
    "bool": "bool",
    "int": "int",
    "int32": "int",
    "int64": "int",
    "float64": "float",
    "uint8": "int",
    "types.UID": "string",
    "types.NodeName": "string",
    "meta.Time": "time",
    "meta.MicroTime": "microtime",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intOrString",
    "meta.FieldsV1": "json",
    "runtime.RawExtension": "json",
    "authentication.ExtraValue": "strings",
    "authorization.ExtraValue": "strings",
}
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^type (\w+) ([\w.\[\]*]+)$", re.MULTILINE)
FIELD = re.compile(
    r'^\t(?:(\w+)\s+)?([\w.\[\]*]+)\s+`json:"([^"]*)"(?:\s+\w+:"[^"]*")*?\s+protobuf:"\w+,(\d+),',
    re.MULTILINE,
)

Field = tuple[str, str]


class Sources:
    """The Go types of all packages."""

    def __init__(self, folder: Path, version: str) -> None:
        self.structs: dict[str, str] = {}
        self.named: dict[str, str] = {}
        for package, path in PACKAGES.items():
            text = (folder / path.format(version) / "types.go").read_text()
            self.structs |= {f"{package}.{m[1]}": m[2] for m in STRUCT.finditer(text)}
            self.named |= {f"{package}.{m[1]}": m[2] for m in NAMED.finditer(text)}

    def fields(self, message: str) -> dict[str, Field]:
        package = message.partition(".")[0]
        found = {}
        for match in FIELD.finditer(self.structs[message]):
            _, go_type, tag, number = match.groups()
            name, _, options = tag.partition(",")
            found[number] = ("" if "inline" in options else name, self.token(go_type, package))
        return found

    def token(self, go_type: str, package: str) -> str:
        """The type in our spelling."""
        if go_type == "[]byte":
            return "bytes"
        for prefix, ours in (("*", "*"), ("[]", "[]"), ("map[string]", "{}")):
            if go_type.startswith(prefix):
                return ours + self.token(go_type.removeprefix(prefix), package)
        if go_type.startswith("map["):  # keys of a named text type
            return "{}" + self.token(go_type.partition("]")[2], package)
        first, dot, rest = go_type.partition(".")
        full = f"{ALIASES.get(first, first)}.{rest}" if dot else f"{package}.{go_type}"
        for spelling in (go_type, full):
            if spelling in SCALARS:
                return SCALARS[spelling]
        if full in self.structs:
            return full
        return self.token(self.named[full], full.partition(".")[0])


def collect(sources: Sources) -> dict[str, dict[str, Field]]:
    found: dict[str, dict[str, Field]] = {}
    todo = list(ROOTS)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = sources.fields(name)
        todo += [
            bare
            for _, token in found[name].values()
            if (bare := token.lstrip("*[]{}")) in sources.structs
        ]
    return dict(sorted(found.items()))


def main() -> None:
    found = collect(Sources(Path(sys.argv[1]), sys.argv[2]))
    lines = [f"{json.dumps(n)}: {json.dumps(f, separators=(',', ':'))}" for n, f in found.items()]
    target = Path(__file__).with_name("messages.json")
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
