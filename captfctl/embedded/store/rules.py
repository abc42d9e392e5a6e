"""CEL rules of custom resources (`x-kubernetes-validations`), transition rules included.

The library is loaded when the first rule is compiled: most stores never need it.
"""

import importlib.util
import re
import sys
from collections.abc import Callable, Container, Mapping
from datetime import timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from captfctl.cluster.errors import Cause
from captfctl.embedded.schemas import Node, Rule
from captfctl.embedded.store.cel_functions import FUNCTIONS, REPLACEMENTS
from captfctl.embedded.store.validation import ABSENT, old_item
from captfctl.embedded.store.violations import child, shown, type_name
from captfctl.model.durations import parse_duration
from captfctl.model.meta import parse_time

_RESERVED = frozenset(
    "true false null in as break const continue else for function if import let loop package "  # noqa: SIM905
    "namespace return var void while".split()
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
# Operators and macros appear among a program's functions under names no identifier can have.
_IDENTIFIER = re.compile(r"[a-zA-Z][a-zA-Z0-9]*\Z")


# A string literal, or a call of a function that the library has but not as CEL defines it.
_CALL = re.compile(
    r"(?P<text>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')"
    r"|\b(?P<name>" + "|".join(REPLACEMENTS) + r")(?=\s*\()"
)


def _replaced(found: re.Match[str]) -> str:
    return found["text"] or REPLACEMENTS[found["name"]]


_NO_MORE: Mapping[str, Callable[..., Any]] = {}


@cache
def cel() -> Any:
    """The compiled part of package `cel`, loaded when the first rule is compiled.

    Importing the package itself also imports its command line, which takes over a second.
    """
    spec = importlib.util.find_spec("cel")
    assert spec is not None, "the package common-expression-language is a dependency"
    assert spec.submodule_search_locations is not None
    for folder in spec.submodule_search_locations:
        for library in sorted(Path(folder).glob("cel.*")):
            inner = importlib.util.spec_from_file_location("cel.cel", library)
            if library.suffix in (".so", ".pyd", ".dylib") and inner and inner.loader:
                module = importlib.util.module_from_spec(inner)
                sys.modules["cel.cel"] = module
                inner.loader.exec_module(module)
                return module
    return importlib.import_module("cel")


class RuleError(Exception):
    """A rule that cannot be compiled; its text says why."""


@lru_cache(maxsize=2048)
def program(expression: str) -> Any:
    """Raises `RuleError`."""
    try:
        return cel().compile(_CALL.sub(_replaced, expression))
    except ValueError as error:
        raise RuleError(" ".join(str(error).split())) from None


def check_rules(node: Node, value: Any, path: str, causes: list[Cause], old: Any = ABSENT) -> None:
    """Append to `causes` every broken rule at `value` and below."""
    if not node.has_rules or value is None:
        return
    for rule in node.rules:
        _check(rule, node, value, path, causes, old)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for key, item in value.items():
            below = node.of(key)
            if below is not None:
                check_rules(below, item, child(path, key), causes, before.get(key, ABSENT))
    elif isinstance(value, list) and node.items is not None:
        earlier = old_item(node, old)
        for index, item in enumerate(value):
            check_rules(node.items, item, child(path, index), causes, earlier(item))


def _check(rule: Rule, node: Node, value: Any, path: str, causes: list[Cause], old: Any) -> None:
    if rule.transition:
        if old is ABSENT and not rule.optional_old:
            return
    elif old is not ABSENT and value == old:
        return
    variables = {"self": to_cel(node, value)}
    if rule.transition:
        variables["oldSelf"] = None if old is ABSENT else to_cel(node, old)
    message = _verdict(rule, variables)
    if message is None:
        return
    where = (path + rule.field_path).removeprefix(".")
    found = type_name(value)
    causes.append(Cause(where or "<nil>", f'Invalid value: "{found}": {message}', rule.reason))


def _verdict(rule: Rule, variables: dict[str, Any]) -> str | None:
    """None when the rule holds, else what to tell."""
    try:
        if evaluate(rule.expression, variables) is True:
            return None
    except Exception as error:  # the library raises whatever fits
        return f"rule evaluation error: {error}: {rule.expression}"
    if rule.message_expression:
        try:
            text = evaluate(rule.message_expression, variables)
        except Exception:  # the plain message takes its place
            text = None
        if isinstance(text, str) and text.strip():
            return text
    return rule.message.strip() or f"failed rule: {' '.join(rule.expression.split())}"


def evaluate(
    expression: str, variables: dict[str, Any], more: Mapping[str, Callable[..., Any]] = _NO_MORE
) -> Any:
    """The value of an expression; `more` are functions beyond those that every expression has.

    Raises `RuleError` for one that cannot be compiled, and whatever the library does.
    """
    compiled = program(expression)
    functions, names = _needs(expression)
    # Each variable is copied into the library's own values: only what is used.
    used = {name: value for name, value in variables.items() if name in names}
    context = cel().Context(variables=used)
    for name in functions:
        function = more.get(name) or FUNCTIONS.get(name)
        if function is not None:
            context.add_function(name, function)
    return compiled.execute(context)


@lru_cache(maxsize=2048)
def _needs(expression: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The functions and the variables that an expression uses."""
    compiled = program(expression)
    return tuple(compiled.functions()), frozenset(compiled.variables())


def to_cel(node: Node, value: Any) -> Any:
    """The value as CEL sees it: typed by the schema, names escaped, unspecified fields left out."""
    if isinstance(value, dict):
        if node.properties or node.additional is None:
            return {
                escaped(key): to_cel(below, value[key])
                for key, below in node.properties.items()
                if key in value
            } | _meta(node, value)
        return {key: to_cel(node.additional, item) for key, item in value.items()}
    if isinstance(value, list):
        if node.items is None:
            return value
        return [to_cel(node.items, item) for item in value]
    return _scalar(node, value)


def _meta(node: Node, value: dict[str, Any]) -> dict[str, Any]:
    """At the root, the object's type and name can be used although no schema specifies them."""
    if node.metadata is None:
        return {}
    found: dict[str, Any] = {key: value[key] for key in ("apiVersion", "kind") if key in value}
    if isinstance(meta := value.get("metadata"), dict):
        found["metadata"] = {key: meta[key] for key in ("name", "generateName") if key in meta}
    return found


def _scalar(node: Node, value: Any) -> Any:
    if node.type == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if node.type == "integer" and isinstance(value, float):
        return int(value)
    if isinstance(value, str):
        if node.format in ("date-time", "datetime"):
            return parse_time(value) or value
        if node.format == "duration":
            return _duration(value)
    return value


def _duration(text: str) -> timedelta | str:
    try:
        return parse_duration(text)
    except ValueError:
        return text  # the format refuses it


@lru_cache(maxsize=2048)
def escaped(name: str) -> str:
    """A property's name as a CEL identifier."""
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[./-]", lambda found: _ESCAPES[found[0]], name)


def rule_problems(node: Node, path: str = "") -> list[Cause]:
    """Rules below a CRD's schema that do not compile, or use a function that is not known."""
    causes = []
    for index, rule in enumerate(node.rules):
        where = child(child(path, "x-kubernetes-validations"), index)
        for field, expression in (
            ("rule", rule.expression),
            ("messageExpression", rule.message_expression),
        ):
            if expression and (problem := problem_in(expression)):
                message = f"Invalid value: {shown(expression)}: compilation failed: {problem}"
                causes.append(Cause(child(where, field), message))
    for key, below in node.properties.items():
        causes += rule_problems(below, f"{path}.properties[{key}]")
    if node.items is not None:
        causes += rule_problems(node.items, f"{path}.items")
    if node.additional is not None:
        causes += rule_problems(node.additional, f"{path}.additionalProperties")
    return causes


def problem_in(
    expression: str,
    variables: Container[str] | None = None,
    more: Mapping[str, Callable[..., Any]] = _NO_MORE,
) -> str:
    """Why an expression cannot be used; empty when it can.

    `variables` are those that it may use, None to leave that open; `more` are further functions.
    """
    try:
        compiled = program(expression)
    except RuleError as error:
        return str(error)
    unknown = [
        name
        for name in compiled.functions()
        if _IDENTIFIER.match(name) and name not in _known() and name not in more
    ]
    if variables is not None:
        free = set(compiled.variables()) - _bound_by_macros(expression) - _TYPES
        unknown += sorted(name for name in free if name not in variables)
    return f"undeclared reference to '{unknown[0]}'" if unknown else ""


_MACRO = re.compile(r"\.(?:all|exists|exists_one|map|filter)\(\s*([a-zA-Z_]\w*)\s*,")
_TYPES = frozenset("bool bytes double dyn int list map null_type string type uint".split())  # noqa: SIM905


def _bound_by_macros(expression: str) -> set[str]:
    """The names that macros like `filter` give to the items of a list."""
    return set(_MACRO.findall(expression))


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    return frozenset(FUNCTIONS) | _LIBRARY


# What the library itself evaluates.
_LIBRARY = frozenset(
    "size contains startsWith endsWith matches string int uint double bytes duration "  # noqa: SIM905
    "timestamp type dyn has all exists exists_one map filter getFullYear getMonth getDate "
    "getDayOfMonth getDayOfWeek getDayOfYear getHours getMinutes getSeconds getMilliseconds max "
    "min".split()
)
