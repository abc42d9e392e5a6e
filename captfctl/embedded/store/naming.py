"""What names, label keys and label values may look like."""

import re
from collections.abc import Mapping
from enum import Enum

from captfctl.cluster.errors import Cause
from captfctl.embedded.store.violations import invalid

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+\Z")

_MUST_BE_LABEL = (
    "must be a lowercase RFC 1123 label: lower case letters, digits and '-', with a letter or "
    "digit at both ends"
)
_MUST_BE_SUBDOMAIN = (
    "must be a lowercase RFC 1123 subdomain: lower case letters, digits, '-' and '.', with a "
    "letter or digit at both ends of every part"
)
_MUST_BE_VALUE = (
    "a label's value must be empty or consist of letters, digits, '-', '_' and '.', with a letter "
    "or digit at both ends"
)
_MUST_BE_NAME_PART = (
    "name part must consist of letters, digits, '-', '_' and '.', with a letter or digit at both "
    "ends"
)


class NameRule(Enum):
    """What a kind's names must be."""

    SUBDOMAIN = "subdomain"
    LABEL = "label"
    PATH = "path"


def label_problems(name: str) -> list[str]:
    """An RFC 1123 label: at most 63 characters."""
    problems = [] if len(name) <= 63 else ["must be no more than 63 characters"]
    return problems if _LABEL.match(name) else [*problems, _MUST_BE_LABEL]


def subdomain_problems(name: str) -> list[str]:
    """An RFC 1123 subdomain: at most 253 characters."""
    problems = [] if len(name) <= 253 else ["must be no more than 253 characters"]
    return problems if _SUBDOMAIN.match(name) else [*problems, _MUST_BE_SUBDOMAIN]


def _path_problems(name: str) -> list[str]:
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in "/%" if part in name]


_PROBLEMS = {
    NameRule.SUBDOMAIN: subdomain_problems,
    NameRule.LABEL: label_problems,
    NameRule.PATH: _path_problems,
}


def name_problems(name: str, rule: NameRule, *, prefix: bool = False) -> list[str]:
    """Why `name` cannot be an object's name; `prefix`: it is a generateName."""
    if prefix and name.endswith("-"):
        # Something follows the dash, so a trailing one is as good as a letter.
        name = name[:-1] + "a"
    return _PROBLEMS[rule](name)


def qualified_name_problems(key: str) -> list[str]:
    """A label or annotation key, a finalizer: `[prefix/]name`."""
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        return ["prefix part must be non-empty"]
    if slash and (problems := subdomain_problems(prefix)):
        return [f"prefix part {problem}" for problem in problems]
    if not name:
        return ["name part must be non-empty", _MUST_BE_NAME_PART]
    if len(name) > 63:
        return ["name part must be no more than 63 characters"]
    return [] if _QUALIFIED.match(name) else [_MUST_BE_NAME_PART]


def label_value_problems(value: str) -> list[str]:
    """Why `value` cannot be the value of a label."""
    if len(value) > 63:
        return ["must be no more than 63 characters"]
    return [] if not value or _QUALIFIED.match(value) else [_MUST_BE_VALUE]


def data_key_problems(key: str) -> list[str]:
    """A key of a Secret's or ConfigMap's data."""
    if len(key) > 253:
        return ["must be no more than 253 characters"]
    if key in (".", "..") or key.startswith(".."):
        return [f"must not be '{key}'" if key in (".", "..") else "must not start with '..'"]
    if _DATA_KEY.match(key):
        return []
    return ["a data key must consist of letters, digits, '-', '_' and '.'"]


def label_causes(labels: Mapping[str, str], path: str) -> list[Cause]:
    """Violations in the labels that stand at `path`."""
    causes = []
    for key, value in labels.items():
        causes += [invalid(path, key, text) for text in qualified_name_problems(key)]
        causes += [invalid(path, value, text) for text in label_value_problems(value)]
    return causes
