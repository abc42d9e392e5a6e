"""What a described object must be before it is put anywhere: a known kind, known fields, types.

The rules themselves are the embedded store's; here they are applied all at once, so that one run
names everything that is wrong, each with its line and with what was probably meant.
"""

import copy
import re
from collections.abc import Iterable, Iterator
from typing import Any

from captfctl.cluster.errors import Cause, NotFound
from captfctl.embedded.described.objects import Described, Violation, deepest
from captfctl.embedded.described.parsing import Candidate
from captfctl.embedded.schemas import Node, node_of
from captfctl.embedded.schemas.builtin import OBJECT_META
from captfctl.embedded.store.metadata import check as metadata_causes
from captfctl.embedded.store.pruning import prune
from captfctl.embedded.store.registry import Registry, Served
from captfctl.embedded.store.validation import validate
from captfctl.errors import Source, nearest
from captfctl.kubeyaml import Place
from captfctl.model.resource import Document

_TYPE_META = ("apiVersion", "kind", "metadata")
_WRONG_TYPE = re.compile(r'must be of type (?P<wanted>.+): "(?P<found>\w+)"$')
_VALUE_SECTIONS = ("data", "stringData")


def resolve(
    candidate: Candidate, registry: Registry, default_namespace: str, violations: list[Violation]
) -> tuple[Described, Served] | None:
    """The object as one of a served kind, its namespace filled in; None when there is no such."""
    try:
        served = registry.find_kind(candidate.api_version, candidate.kind)
    except NotFound:
        message, path = _unknown_kind(candidate, registry)
        violations.append(candidate.violation(message, path))
        return None
    document = copy.deepcopy(candidate.document)
    metadata = document["metadata"]
    if served.resource.namespaced:
        metadata["namespace"] = metadata.get("namespace") or default_namespace
    elif metadata.get("namespace"):
        message = f"a {candidate.kind} belongs to no namespace: remove this field"
        violations.append(candidate.violation(message, "metadata.namespace"))
        return None
    return Described(served.resource, document, candidate.file, candidate.root), served


def _unknown_kind(candidate: Candidate, registry: Registry) -> tuple[str, str]:
    version, kind = candidate.api_version, candidate.kind
    kinds: dict[str, list[str]] = {}
    for served in registry:
        kinds.setdefault(served.resource.kind, []).append(served.resource.api_version)
    if kind in kinds:
        known = " or ".join(sorted(kinds[kind]))
        return f'there is no {kind} in "{version}": use {known}', "apiVersion"
    return f'there is no kind "{kind}" in {version}{_meant(kind, kinds)}', "kind"


def check(described: Described, served: Served) -> Iterator[Violation]:
    """Every unknown field and every value that breaks the schema of the object's kind."""
    yield from _check(described, described.document, served.schema, _TYPE_META, not served.custom)
    if served.custom:
        metadata = {"metadata": described.document["metadata"]}
        node = Node(type="object", properties={"metadata": node_of(OBJECT_META)})
        yield from _check(described, metadata, node, (), True)


def check_metadata(described: Described, served: Served) -> Iterator[Violation]:
    """Names, labels and annotations that no object may have. The types must be right."""
    for cause in metadata_causes(described.document["metadata"], served.strategy.name_rule):
        yield violation(described, cause)


def oddities(described: Described, served: Served) -> Iterator[Violation]:
    """Values and keys that kubectl reads otherwise than YAML 1.2, where no type says what is meant.

    `on` for a boolean field or `0644` for a number are what they seem to be; as a variable they
    may have been meant as text.
    """
    yield from _oddities(described, described.root, served.schema, "")


def _oddities(
    described: Described, place: Place, node: Node | None, path: str
) -> Iterator[Violation]:
    for key, below in place.below.items():
        if isinstance(key, int):
            known, child = node.items if node else None, f"{path}[{key}]"
        else:
            known, child = node.of(key) if node else None, f"{path}.{key}" if path else key
        where = Source(described.file, below.line)
        if below.odd_key:
            message = f"{below.odd_key}, as by kubectl: put the key in quotes if it is not meant"
            yield Violation(where, message, child)
        if below.odd and (known is None or not known.type):
            message = f"{below.odd}, as by kubectl: put it in quotes if text is meant"
            yield Violation(where, message, child)
        yield from _oddities(described, below, known, child)


def _check(
    described: Described, document: Document, node: Node, keep: tuple[str, ...], builtin: bool
) -> Iterator[Violation]:
    value = _without_nulls(document) if builtin else copy.deepcopy(document)
    causes: list[Cause] = []
    validate(node, value, "", causes)
    for cause in causes:
        yield violation(described, cause)
    unknown: list[str] = []
    prune(node, value, "", unknown, keep)
    for path in unknown:
        source, message = _unknown_field(described, node, path)
        yield Violation(source, message, path)


def violation(described: Described, cause: Cause) -> Violation:
    """A schema's or the store's complaint, with its line."""
    secret = described.resource.kind == "Secret" and cause.field.startswith(_VALUE_SECTIONS)
    return Violation(described.place(cause.field), _plain(cause, secret), cause.field)


def _plain(cause: Cause, secret: bool) -> str:
    message = cause.message.replace(f"{cause.field} in body ", "")
    if match := _WRONG_TYPE.search(message):
        found = match["found"]
        hint = ""
        if match["wanted"] == "boolean" and found == "string":
            hint = ": write true or false, without quotes"
        if match["wanted"] == "string" and found in ("boolean", "integer", "number"):
            hint = ": put it in quotes"
        return f"must be of type {match['wanted']}, not {found}{hint}"
    if secret and cause.reason not in ("FieldValueRequired", "FieldValueTooLong"):
        return "must be base64; plain text belongs into stringData"
    if cause.reason == "FieldValueRequired":
        detail = message.partition("Required value: ")[2]
        return f"is required: {detail}" if detail else "is required"
    return message.removeprefix('Invalid value: "object": ')


def _unknown_field(described: Described, node: Node, path: str) -> tuple[Source, str]:
    place, keys = deepest(described.root, path)
    source = Source(described.file, place.line)
    parent: Node | None = node
    for key in keys[:-1]:
        if parent is not None:
            parent = parent.items if isinstance(key, int) else parent.of(key)
    siblings = parent.properties if parent is not None else {}
    return source, f"there is no such field{_meant(str(keys[-1]) if keys else path, siblings)}"


def _meant(word: str, words: Iterable[str]) -> str:
    near = nearest(word, words)
    return f": did you mean {near}?" if near else ""


def _without_nulls(value: Any) -> Any:
    """Kubernetes' own kinds take a null as absence."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value
