"""ValidatingAdmissionPolicies and their bindings: defaults, and what cannot be one."""

import re
from collections.abc import Iterable, Iterator

from captfctl.cluster.errors import Cause
from captfctl.embedded.store.admission import AUTHORIZER
from captfctl.embedded.store.naming import NameRule, name_problems
from captfctl.embedded.store.rules import problem_in
from captfctl.embedded.store.strategy import Typed
from captfctl.embedded.store.violations import (
    child,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from captfctl.model.resource import Document

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_FAILURE_POLICIES = ("Fail", "Ignore")
_MATCH_POLICIES = ("Equivalent", "Exact")
_SCOPES = ("*", "Cluster", "Namespaced")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_NOT_FOUND_ACTIONS = ("Deny", "Allow")
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*\Z")


def _default_match(match: Document) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rules in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(rules, ()):
            rule.setdefault("scope", "*")


class PolicyStrategy(Typed):
    name_rule = NameRule.SUBDOMAIN
    has_status = True
    has_generation = True

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        if "matchConstraints" in spec:
            _default_match(spec["matchConstraints"])

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        return list(_policy_causes(document["spec"]))


class PolicyBindingStrategy(Typed):
    name_rule = NameRule.SUBDOMAIN
    has_generation = True

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        if "matchResources" in spec:
            _default_match(spec["matchResources"])

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        return list(_binding_causes(document["spec"]))


def _policy_causes(spec: Document) -> Iterator[Cause]:
    yield from _one_of("spec.failurePolicy", spec["failurePolicy"], _FAILURE_POLICIES)
    if kind := spec.get("paramKind"):
        for field in ("apiVersion", "kind"):
            if not kind.get(field):
                yield required(f"spec.paramKind.{field}")
    match = spec.get("matchConstraints")
    if match is None:
        yield required("spec.matchConstraints")
    else:
        yield from _match_causes(match, "spec.matchConstraints")
        if not match.get("resourceRules"):
            yield required("spec.matchConstraints.resourceRules")
    known = {"object", "oldObject", "request", "namespaceObject", "authorizer", "variables"}
    if spec.get("paramKind"):
        known.add("params")
    yield from _condition_causes(spec.get("matchConditions", ()), known - {"variables"})
    yield from _variable_causes(spec.get("variables", ()), known)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        for field in ("validations", "auditAnnotations"):
            detail = "validations or auditAnnotations must contain at least one item"
            yield required(f"spec.{field}", detail)
    for index, validation in enumerate(spec.get("validations", ())):
        yield from _validation_causes(validation, child("spec.validations", index), known)


def _match_causes(match: Document, path: str) -> Iterator[Cause]:
    yield from _one_of(f"{path}.matchPolicy", match["matchPolicy"], _MATCH_POLICIES)
    for rules in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(rules, ())):
            yield from _rule_causes(rule, child(f"{path}.{rules}", index))


def _rule_causes(rule: Document, path: str) -> Iterator[Cause]:
    for field in ("operations", "apiGroups", "apiVersions", "resources"):
        values = rule.get(field) or []
        if not values:
            yield required(f"{path}.{field}")
        elif field != "resources" and len(values) > 1 and "*" in values:
            detail = "if '*' is present, nothing else may be"
            yield invalid(f"{path}.{field}", values, detail)
    for index, operation in enumerate(rule.get("operations", ())):
        yield from _one_of(child(f"{path}.operations", index), operation, _OPERATIONS)
    yield from _one_of(f"{path}.scope", rule["scope"], _SCOPES)


def _condition_causes(conditions: Iterable[Document], known: set[str]) -> Iterator[Cause]:
    seen = set()
    for index, condition in enumerate(conditions):
        path = child("spec.matchConditions", index)
        yield from _expression_causes(condition, "expression", path, known)
        name = condition.get("name", "")
        if not name:
            yield required(f"{path}.name")
        elif name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)


def _variable_causes(variables: Iterable[Document], known: set[str]) -> Iterator[Cause]:
    for index, variable in enumerate(variables):
        path = child("spec.variables", index)
        name = variable.get("name", "").strip()
        if not name:
            yield required(f"{path}.name", "name is not specified")
        elif not _IDENTIFIER.match(name):
            yield invalid(f"{path}.name", name, "must be a valid CEL identifier")
        yield from _expression_causes(variable, "expression", path, known)


def _validation_causes(validation: Document, path: str, known: set[str]) -> Iterator[Cause]:
    yield from _expression_causes(validation, "expression", path, known)
    if validation.get("messageExpression"):
        without_authorizer = known - {"authorizer"}
        yield from _expression_causes(validation, "messageExpression", path, without_authorizer)
    message = validation.get("message", "")
    if message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip() or "\r" in message.strip():
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    if "reason" in validation:
        yield from _one_of(f"{path}.reason", validation["reason"], _REASONS)


def _expression_causes(holder: Document, field: str, path: str, known: set[str]) -> Iterator[Cause]:
    expression, where = holder.get(field, ""), f"{path}.{field}"
    if not expression.strip():
        yield required(where, f"{field} is not specified")
    elif problem := problem_in(expression, known, AUTHORIZER):
        yield invalid(where, expression, f"compilation failed: {problem}")


def _binding_causes(spec: Document) -> Iterator[Cause]:
    name = spec.get("policyName", "")
    if not name:
        yield required("spec.policyName")
    for problem in name_problems(name, NameRule.SUBDOMAIN) if name else ():
        yield invalid("spec.policyName", name, problem)
    if ref := spec.get("paramRef"):
        yield from _param_causes(ref)
    if match := spec.get("matchResources"):
        yield from _match_causes(match, "spec.matchResources")
    yield from _action_causes(spec.get("validationActions", []))


def _param_causes(ref: Document) -> Iterator[Cause]:
    path = "spec.paramRef"
    if ref.get("name") and "selector" in ref:
        for field in ("name", "selector"):
            yield forbidden(f"{path}.{field}", "name and selector are mutually exclusive")
    if not ref.get("name") and "selector" not in ref:
        yield required(path, "one of name or selector must be specified")
    action = f"{path}.parameterNotFoundAction"
    if not ref.get("parameterNotFoundAction"):
        yield required(action)
    else:
        yield from _one_of(action, ref["parameterNotFoundAction"], _NOT_FOUND_ACTIONS)


def _action_causes(actions: list[str]) -> Iterator[Cause]:
    path = "spec.validationActions"
    for index, action in enumerate(actions):
        yield from _one_of(child(path, index), action, _ACTIONS)
        if action in actions[:index]:
            yield duplicate(child(path, index), action)
    if "Deny" in actions and "Warn" in actions:
        yield invalid(path, actions, "must not contain both Deny and Warn")
    if not actions:
        yield required(path, "at least one validation action is required")


def _one_of(path: str, value: str, options: tuple[str, ...]) -> Iterator[Cause]:
    if value not in options:
        yield unsupported(path, value, options)
