"""ValidatingAdmissionPolicies: which of them a request has to pass."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from captfctl.embedded.store.registry import Registry, Served
from captfctl.embedded.store.selectors import LabelSelector, Operator, Requirement
from captfctl.model.resource import Document
from captfctl.model.resources import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS, NAMESPACES

STORAGES = frozenset({ADMISSION_POLICIES.name, ADMISSION_POLICY_BINDINGS.name})
"""Where policies are kept. They decide about everything but themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One write, as policies see it. `object` is None for a delete, `old` for a create."""

    served: Served
    operation: str
    name: str
    namespace: str
    object: Document | None
    old: Document | None
    user: Mapping[str, Any]
    subresource: str = ""
    dry_run: bool = False

    @property
    def of_namespace(self) -> bool:
        """Whether it is about a Namespace itself."""
        return self.served.resource.name == NAMESPACES.name

    @property
    def document(self) -> Document:
        """The variable `request`."""
        resource = self.served.resource
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        place = {"group": resource.group, "version": resource.version, "resource": resource.plural}
        subresource = self.subresource
        optional = {
            "subResource": subresource,
            "requestSubResource": subresource,
            "name": self.name,
            "namespace": self.namespace,
        }
        return {
            "uid": "",
            "kind": kind,
            "resource": place,
            "requestKind": kind,
            "requestResource": place,
            **{key: value for key, value in optional.items() if value},
            "operation": self.operation,
            "userInfo": dict(self.user),
            "dryRun": self.dry_run,
            "options": None,
        }


@dataclass(frozen=True, slots=True)
class Bound:
    """A policy with one of its bindings."""

    policy: Document
    binding: Document

    @property
    def policy_name(self) -> str:
        return str(self.policy["metadata"]["name"])

    @property
    def binding_name(self) -> str:
        return str(self.binding["metadata"]["name"])

    @property
    def spec(self) -> Document:
        spec: Document = self.policy["spec"]
        return spec

    @property
    def actions(self) -> list[str]:
        return list(self.binding["spec"].get("validationActions", ()))

    @property
    def ignores_errors(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")


def bound(policies: Iterable[Document], bindings: Iterable[Document]) -> tuple[Bound, ...]:
    """Every pair in force, by the names of both."""
    known = {policy["metadata"]["name"]: policy for policy in policies}
    pairs = [
        Bound(known[name], binding)
        for binding in bindings
        if (name := binding["spec"]["policyName"]) in known
    ]
    return tuple(sorted(pairs, key=lambda pair: (pair.policy_name, pair.binding_name)))


LabelsOf = Callable[[str], Mapping[str, str]]


def applies(pair: Bound, request: Request, registry: Registry, namespace_labels: LabelsOf) -> bool:
    """Whether policy and binding both select the request."""
    if request.served.storage in STORAGES:
        return False
    both = (pair.spec.get("matchConstraints"), pair.binding["spec"].get("matchResources"))
    return all(_selects(match or {}, request, registry, namespace_labels) for match in both)


def _selects(
    match: Document, request: Request, registry: Registry, namespace_labels: LabelsOf
) -> bool:
    equivalent = match.get("matchPolicy") != "Exact"
    resources = list(_resources(request.served, registry, equivalent))
    rules, excluded = match.get("resourceRules", ()), match.get("excludeResourceRules", ())
    return (
        not any(_covers(rule, request, resources) for rule in excluded)
        and (not rules or any(_covers(rule, request, resources) for rule in rules))
        and _selects_namespace(match.get("namespaceSelector"), request, namespace_labels)
        and _selects_object(match.get("objectSelector"), request)
    )


def _resources(served: Served, registry: Registry, equivalent: bool) -> Iterator[Served]:
    """The resource itself, and its other versions where these count as the same."""
    yield served
    if equivalent:
        yield from (other for other in registry.of_storage(served.storage) if other != served)


def _covers(rule: Document, request: Request, resources: list[Served]) -> bool:
    names = rule.get("resourceNames")
    return (
        _listed(rule.get("operations"), request.operation)
        and (not names or request.name in names)
        and _in_scope(rule.get("scope", "*"), request)
        and any(_names(rule, served, request.subresource) for served in resources)
    )


def _names(rule: Document, served: Served, subresource: str) -> bool:
    resource = served.resource
    if not _listed(rule.get("apiGroups"), resource.group):
        return False
    if not _listed(rule.get("apiVersions"), resource.version):
        return False
    for pattern in rule.get("resources", ()):
        plural, _, below = pattern.partition("/")
        if plural in ("*", resource.plural) and below in ("*", subresource):
            return True
    return False


def _listed(items: list[str] | None, wanted: str) -> bool:
    return any(item in ("*", wanted) for item in items or ())


def _in_scope(scope: str, request: Request) -> bool:
    inside = bool(request.namespace) and not request.of_namespace
    return scope == "*" or inside == (scope == "Namespaced")


def _selects_namespace(
    selector: Document | None, request: Request, namespace_labels: LabelsOf
) -> bool:
    parsed = label_selector(selector)
    if not parsed.requirements or not (request.namespace or request.of_namespace):
        return True
    if request.of_namespace and request.object is not None:
        return parsed.matches(_labels(request.object))
    return parsed.matches(namespace_labels(request.namespace or request.name))


def _selects_object(selector: Document | None, request: Request) -> bool:
    parsed = label_selector(selector)
    if not parsed.requirements:
        return True
    known = [document for document in (request.object, request.old) if document is not None]
    return any(parsed.matches(_labels(document)) for document in known)


def _labels(document: Document) -> Mapping[str, str]:
    labels: Mapping[str, str] = (document.get("metadata") or {}).get("labels") or {}
    return labels


_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.ABSENT,
}


def label_selector(selector: Document | None) -> LabelSelector:
    """A selector as objects hold one. None and {} select everything."""
    given = selector or {}
    exact = [
        Requirement(key, Operator.IN, frozenset({value}))
        for key, value in (given.get("matchLabels") or {}).items()
    ]
    terms = [
        Requirement(term["key"], _OPERATORS[term["operator"]], frozenset(term.get("values", ())))
        for term in given.get("matchExpressions") or ()
    ]
    return LabelSelector((*exact, *terms))
