"""What the ValidatingAdmissionPolicies in a store say about a write, in the real server's words."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from captfctl.cluster.errors import (
    ApiError,
    Cause,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
)
from captfctl.embedded.store.objects import decode
from captfctl.embedded.store.policies import Bound, Request, applies, label_selector
from captfctl.embedded.store.registry import Served
from captfctl.embedded.store.rules import evaluate
from captfctl.embedded.store.violations import refused
from captfctl.install.policy_parts import PROBLEMS
from captfctl.model.resource import Document
from captfctl.model.resources import NAMESPACES

if TYPE_CHECKING:
    from captfctl.embedded.store.engine import Engine

_LONGEST_MESSAGE = 5 * 1024
_VARIABLE = re.compile(r"\bvariables\.(\w+)")
_ABSENT = object()


class DeniedByPolicy(ApiError):
    """A policy refuses a write; `causes` has its message.

    `problems`: what is wrong, field by field, where the policy lists that in a variable as those of
    captfctl do.
    """

    def __init__(self, what: str, problems: Sequence[Cause] = ()) -> None:
        ApiError.__init__(self, what)
        self.problems = tuple(problems)
        said = what.partition(" is forbidden: ")[2]
        self.causes: tuple[Cause, ...] = (Cause("", said, ""),)


class _Invalid(DeniedByPolicy, Invalid):
    pass


class _Forbidden(DeniedByPolicy, Forbidden):
    pass


class _TooLarge(DeniedByPolicy, TooLarge):
    pass


_BY_REASON: Mapping[str, type[DeniedByPolicy]] = {
    kind.reason: kind for kind in (_Invalid, _Forbidden, _TooLarge)
}


# Everybody whom the embedded server knows may do everything, so the answers need no questions.
AUTHORIZER: Mapping[str, Callable[..., Any]] = {
    **{
        builder: lambda asked, *_: asked
        for builder in (
            *("path", "serviceAccount", "group", "resource", "subresource", "namespace", "name"),
            *("fieldSelector", "labelSelector", "check"),
        )
    },
    "allowed": lambda _: True,
    "errored": lambda _: False,
    "error": lambda _: "",
    "reason": lambda _: "",
}
"""The functions of Kubernetes' `authorizer`, as an object that a method may be called on."""


@lru_cache(maxsize=2048)
def _variables_in(expression: str) -> tuple[str, ...]:
    """The policy's own variables that an expression names."""
    return tuple(dict.fromkeys(_VARIABLE.findall(expression)))


class EvaluationFailedError(Exception):
    """An expression has no value; the text says which and why."""


class _Expressions:
    """Evaluates one policy's expressions about one request, its variables when they are needed."""

    def __init__(self, spec: Document, given: Mapping[str, Any]) -> None:
        self._given = given
        self._texts = {v["name"]: v["expression"] for v in spec.get("variables", ())}
        self._values: dict[str, Any] = {}
        self._failures: dict[str, EvaluationFailedError] = {}

    def __call__(self, expression: str) -> Any:
        """Raises `EvaluationFailedError`."""
        named = _variables_in(expression)
        for name in named:
            self._find(name)
        values = {name: self._values[name] for name in named if name in self._values}
        try:
            return evaluate(expression, {**self._given, "variables": values}, AUTHORIZER)
        except Exception as problem:  # the library raises whatever fits
            # A variable that has no value is left out: that is an error only where it is reached.
            missing = problem.args[0] if isinstance(problem, KeyError) and problem.args else ""
            why = self._failures.get(str(missing).strip("'"))
            text = f"no such key: {missing}".replace("'", "") if missing else str(problem)
            raise EvaluationFailedError(
                f"expression '{expression}' resulted in error: {why or text}"
            ) from None

    def _find(self, name: str) -> None:
        if name in self._values or name in self._failures or name not in self._texts:
            return
        try:
            self._values[name] = self(self._texts[name])
        except EvaluationFailedError as problem:
            self._failures[name] = problem


@dataclass(frozen=True, slots=True)
class _Denial:
    message: str
    reason: str = "Invalid"
    problems: tuple[Cause, ...] = ()


def admit(engine: "Engine", request: Request) -> tuple[str, ...]:
    """Ask every policy that applies; answers the warnings of those that only warn.

    Raises `DeniedByPolicy` with what the first that refuses says.
    """
    denied: ApiError | None = None
    warnings: list[str] = []
    for pair in engine.policies():
        if not applies(pair, request, engine.registry, lambda name: _labels_of(engine, name)):
            continue
        for denial in _denials(engine, pair, request):
            where = f"'{pair.policy_name}' with binding '{pair.binding_name}'"
            if "Warn" in pair.actions:
                warnings.append(
                    f"Validation failed for ValidatingAdmissionPolicy {where}: {denial.message}"
                )
            if "Deny" in pair.actions and denied is None:
                said = f"ValidatingAdmissionPolicy {where} denied request: {denial.message}"
                denied = _error(request, denial, said)
    if denied is not None:
        raise denied
    return tuple(warnings)


def _error(request: Request, denial: _Denial, said: str) -> DeniedByPolicy:
    text = str(refused(request.served.resource.name, request.name, said))
    return _BY_REASON.get(denial.reason, _Invalid)(text, denial.problems)


def _denials(engine: "Engine", pair: Bound, request: Request) -> list[_Denial]:
    try:
        params = _params(engine, pair, request)
    except _ConfigurationError as problem:
        text = f"failed to configure binding: {problem}"
        return [] if pair.ignores_errors else [_Denial(text)]
    given: Document = {
        "object": request.object,
        "oldObject": request.old,
        "request": request.document,
        "namespaceObject": _namespace(engine, request),
        "authorizer": {"requestResource": {}},
    }
    found = []
    for value in params:
        more = {} if value is _ABSENT else {"params": value}
        found += _verdicts(pair, _Expressions(pair.spec, {**given, **more}))
    return found


def _verdicts(pair: Bound, value_of: _Expressions) -> list[_Denial]:
    """What the validations say, none when a match condition does not hold."""
    failures = []
    for condition in pair.spec.get("matchConditions", ()):
        try:
            if value_of(condition["expression"]) is not True:
                return []
        except EvaluationFailedError as problem:
            failures.append(str(problem))
    if failures:
        text = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
        return [] if pair.ignores_errors else [_Denial(text)]
    verdicts = (
        _verdict(validation, pair, value_of) for validation in pair.spec.get("validations", ())
    )
    return [verdict for verdict in verdicts if verdict is not None]


def _verdict(validation: Document, pair: Bound, value_of: _Expressions) -> _Denial | None:
    expression = validation["expression"]
    try:
        if value_of(expression) is True:
            return None
    except EvaluationFailedError as problem:
        return None if pair.ignores_errors else _Denial(str(problem))
    reason = validation.get("reason") or "Invalid"
    problems = _problems(value_of) if PROBLEMS in _variables_in(expression) else ()
    return _Denial(_message(validation, value_of), reason, problems)


def _message(validation: Document, value_of: _Expressions) -> str:
    """The message expression's text, unless it is too long or has several lines; else the fixed
    one."""
    text: Any = None
    if written := validation.get("messageExpression"):
        try:
            text = value_of(written)
        except EvaluationFailedError:
            text = None
    if isinstance(text, str):
        one_line = text.strip()
        if one_line and len(one_line.encode()) <= _LONGEST_MESSAGE and "\n" not in one_line:
            return one_line
    fixed: str = validation.get("message", "").strip()
    return fixed or f"failed expression: {validation['expression'].strip()}"


def _problems(value_of: _Expressions) -> tuple[Cause, ...]:
    """What our own policies list: maps with a field and a message."""
    found = value_of(f"variables.{PROBLEMS}")
    if not isinstance(found, list):
        return ()
    return tuple(
        Cause(item["field"], item["message"])
        for item in found
        if isinstance(item, dict) and {"field", "message"} <= set(item)
    )


def _labels_of(engine: "Engine", namespace: str) -> Mapping[str, str]:
    found = _get(engine, _served(engine, NAMESPACES.api_version, NAMESPACES.kind), "", namespace)
    labels: Mapping[str, str] = (found or {}).get("metadata", {}).get("labels") or {}
    return labels


def _namespace(engine: "Engine", request: Request) -> Document | None:
    if not request.namespace or request.of_namespace:
        return None
    served = _served(engine, NAMESPACES.api_version, NAMESPACES.kind)
    return _get(engine, served, "", request.namespace)


def _served(engine: "Engine", api_version: str, kind: str) -> Served:
    return engine.registry.find_kind(api_version, kind)


def _get(engine: "Engine", served: Served, namespace: str, name: str) -> Document | None:
    key = f"{namespace}/{name}" if served.resource.namespaced else name
    record = engine.collection(served).records.get(key)
    return decode(record.body) if record is not None else None


class _ConfigurationError(Exception):
    """A binding's parameters cannot be had; the text says why."""


def _params(engine: "Engine", pair: Bound, request: Request) -> list[Any]:
    """The objects that the policy is evaluated with, one after the other.

    Raises `_ConfigurationError`.
    """
    kind, ref = pair.spec.get("paramKind"), pair.binding["spec"].get("paramRef")
    if kind is None:
        return [_ABSENT]
    if ref is None:
        return [None]
    try:
        served = _served(engine, kind["apiVersion"], kind["kind"])
    except NotFound:
        raise _ConfigurationError(
            f"failed to find resource referenced by paramKind: '{kind['apiVersion']}, "
            f"Kind={kind['kind']}'"
        ) from None
    namespace = ref.get("namespace") or request.namespace
    if served.resource.namespaced and not namespace:
        raise _ConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    if name := ref.get("name"):
        one = _get(engine, served, namespace, name)
        found = [] if one is None else [one]
    else:
        found = _selected(engine, served, namespace, ref.get("selector"))
    if not found and ref.get("parameterNotFoundAction") == "Deny":
        raise _ConfigurationError(
            "no params found for policy binding with `Deny` parameterNotFoundAction"
        )
    return found


def _selected(
    engine: "Engine", served: Served, namespace: str, selector: Document | None
) -> list[Document]:
    parsed = label_selector(selector)
    documents = [
        decode(record.body)
        for record in tuple(engine.collection(served).records.values())
        if not served.resource.namespaced or record.namespace == namespace
    ]
    return [d for d in documents if parsed.matches(d["metadata"].get("labels") or {})]
