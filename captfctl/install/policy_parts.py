"""What an admission policy consists of, and the parts of CEL that its rules are written in."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from captfctl.model.resource import Document, Resource
from captfctl.model.resources import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS

PROBLEMS = "problems"
"""The variable with everything that is wrong: a list of maps with `field` and `message`."""

_TOO_MUCH = (
    "spec breaks more rules than one answer holds; `captfctl reconcile --dry-run -f FILE` lists "
    "them all"
)


def text(value: str) -> str:
    """A CEL literal of a text."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def texts(values: Iterable[str]) -> str:
    """A CEL literal of a list of texts."""
    return f"[{', '.join(text(value) for value in values)}]"


def has(root: str, path: str, *, free: bool = False) -> str:
    """CEL: whether `root` has a value at `path`. `free`: in a map whose content no schema knows."""
    parts: list[str] = []
    for step in path.split("."):
        if parts and free:
            parts.append(f"type({root}) == map")
        parts.append(f"has({root}.{step})")
        root = f"{root}.{step}"
    return " && ".join(parts)


def changed(path: str) -> str:
    """CEL: whether the object has a value at `path` that the stored object does not have.

    What was stored under looser rules must not stop changes of other fields.
    """
    return (
        f"{has('object', path)} && (oldObject == null || !({has('oldObject', path)}) || "
        f"object.{path} != oldObject.{path})"
    )


def problem(field: str, message: str) -> str:
    """CEL: one of the problems that a policy lists."""
    return f"{{'field': string({field}), 'message': string({message})}}"


def in_force(name: str, spec: Document, action: str = "Deny") -> list[Document]:
    """A policy, and the binding that puts it into force everywhere."""
    return [
        {
            "apiVersion": ADMISSION_POLICIES.api_version,
            "kind": ADMISSION_POLICIES.kind,
            "metadata": {"name": name},
            "spec": spec,
        },
        {
            "apiVersion": ADMISSION_POLICY_BINDINGS.api_version,
            "kind": ADMISSION_POLICY_BINDINGS.kind,
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": [action]},
        },
    ]


@dataclass(frozen=True, kw_only=True)
class Helper:
    """A value that several rules use, as `variables.NAME`."""

    name: str
    expression: str

    @property
    def document(self) -> Document:
        return {"name": self.name, "expression": self.expression}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One thing that objects must not have.

    `items` is a CEL list of what breaks the rule. `field` and `message` are CEL texts about one
    `item` of it.
    """

    name: str
    items: str
    field: str
    message: str

    @property
    def expression(self) -> str:
        return f"({self.items}).map(item, {problem(self.field, self.message)})"

    @property
    def document(self) -> Document:
        return {"name": self.name, "expression": self.expression}


@dataclass(frozen=True, kw_only=True)
class Validation:
    """One rule about who asks. `message` is a CEL text; `otherwise` is for when it fails."""

    expression: str
    message: str
    otherwise: str

    @property
    def document(self) -> Document:
        return {
            "expression": self.expression,
            "messageExpression": self.message,
            "message": self.otherwise,
            "reason": "Invalid",
        }


_NOTHING_WRONG = Validation(
    expression=f"variables.{PROBLEMS}.size() == 0",
    message=f"variables.{PROBLEMS}.map(p, p.field + ': ' + p.message).join('; ')",
    otherwise=_TOO_MUCH,
)


# What the manager writes most, finalizers and annotations, costs one comparison.
SPEC_CHANGES = (
    "oldObject == null || !has(object.spec) || !has(oldObject.spec) || "
    "object.spec != oldObject.spec"
)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The rules of one kind, for creates and for updates that change what they are about.

    `matches`: CEL, whether a request changes that. `about_who_asks`: so are the rules, not only the
    validations; where nobody asks, as for objects that are read from files, none of them holds.
    `action`: Deny, or Warn for what a person should know and may do. A kind may have one of each.
    """

    resource: Resource[Document]
    action: str = "Deny"
    matches: str = SPEC_CHANGES
    helpers: tuple[Helper, ...] = ()
    rules: tuple[Rule, ...] = ()
    validations: tuple[Validation, ...] = ()
    about_who_asks: bool = False

    @property
    def name(self) -> str:
        return self.resource.name if self.action == "Deny" else f"advice.{self.resource.name}"

    @property
    def where_nobody_asks(self) -> "Policy | None":
        """Without the rules about who makes a request; None when nothing is left."""
        if self.about_who_asks or not self.rules:
            return None
        return replace(self, validations=())

    def documents(self) -> list[Document]:
        """The policy and the binding that puts it into force everywhere."""
        return in_force(self.name, self._spec(), self.action)

    def _spec(self) -> Document:
        resource = self.resource
        rule = {
            "apiGroups": [resource.group],
            "apiVersions": [resource.version],
            "operations": ["CREATE", "UPDATE"],
            "resources": [resource.plural],
        }
        spec: Document = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "spec-changes", "expression": self.matches}],
        }
        validations = list(self.validations)
        if self.rules:
            everything = " + ".join(f"variables.{rule.name}" for rule in self.rules)
            variables = [helper.document for helper in self.helpers]
            variables += [rule.document for rule in self.rules]
            spec["variables"] = [*variables, {"name": PROBLEMS, "expression": everything}]
            validations.insert(0, _NOTHING_WRONG)
        spec["validations"] = [validation.document for validation in validations]
        return spec
