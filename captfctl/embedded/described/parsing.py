"""Texts into API objects: one object per document, lists flattened, the shape checked."""

from collections.abc import Iterator
from dataclasses import dataclass

from captfctl.embedded.described.objects import Violation
from captfctl.embedded.described.reading import Text
from captfctl.errors import Source
from captfctl.kubeyaml import Json, Parsed, Place, Problem, documents
from captfctl.model.resource import Document


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document with an apiVersion, a kind and a name; whether that kind exists is not known."""

    document: Document
    file: str
    root: Place

    @property
    def api_version(self) -> str:
        """Its apiVersion, as written."""
        return str(self.document["apiVersion"])

    @property
    def kind(self) -> str:
        """Its kind, as written."""
        return str(self.document["kind"])

    def violation(self, message: str, path: str = "") -> Violation:
        """Something wrong with it, at the line of `path`."""
        place = self.root.below.get(path.partition(".")[0], self.root)
        return Violation(Source(self.file, place.line), message, path)


def candidates(text: Text, violations: list[Violation]) -> Iterator[Candidate]:
    """The objects of one text; what is wrong goes to `violations`. Empty documents are skipped."""
    problems: list[Problem] = []
    found = False
    for parsed in documents(text.content, problems):
        if parsed.value is not None:
            found = True
            yield from _flat(parsed, text.name, violations)
    violations.extend(
        Violation(Source(text.name, problem.line), problem.message, problem.path)
        for problem in problems
    )
    if not found and not problems:
        violations.append(Violation(Source(text.name), "no object is described here"))


def _flat(parsed: Parsed, file: str, violations: list[Violation]) -> Iterator[Candidate]:
    value, place = parsed.value, parsed.place
    if isinstance(value, dict) and "items" in value:
        yield from _items(value, place, file, violations)
        return
    wrong = list(_shape(value, place))
    if wrong:
        violations.extend(
            Violation(Source(file, line), message, path) for line, path, message in wrong
        )
    else:
        yield Candidate(value, file, place)


def _items(
    value: Document, place: Place, file: str, violations: list[Violation]
) -> Iterator[Candidate]:
    """What has `items` is a list to kubectl, whatever its kind. Those of a typed list are of its
    kind when they name none."""
    wrong = list(_text(value, place, "kind", "kind"))
    items = [] if value["items"] is None else value["items"]
    if not isinstance(items, list):
        message = f"must be a list, not {_called(items)}"
        wrong.append((place.below["items"].line, "items", message))
    if wrong:
        violations.extend(Violation(Source(file, line), text, path) for line, path, text in wrong)
        return
    places = place.below["items"].below
    kind = value["kind"].removesuffix("List")
    for index, item in enumerate(items):
        if isinstance(item, dict) and kind and not item.get("kind") and not item.get("apiVersion"):
            item = {**item, "apiVersion": value.get("apiVersion"), "kind": kind}
        yield from _flat(Parsed(item, places[index]), file, violations)


def _shape(value: Json, place: Place) -> Iterator[tuple[int, str, str]]:
    """Line, path and message of what keeps a document from being an API object."""
    if not isinstance(value, dict):
        yield place.line, "", f"an object is expected here, not {_called(value)}"
        return
    for key in ("apiVersion", "kind"):
        yield from _text(value, place, key, key)
    metadata = value.get("metadata")
    where = place.below.get("metadata", place)
    if metadata is None:
        yield where.line, "metadata.name", "is missing"
    elif not isinstance(metadata, dict):
        yield where.line, "metadata", f"must be an object, not {_called(metadata)}"
    else:
        yield from _text(metadata, where, "name", "metadata.name")
        if metadata.get("namespace") is not None:
            yield from _text(metadata, where, "namespace", "metadata.namespace")


def _text(value: Document, place: Place, key: str, path: str) -> Iterator[tuple[int, str, str]]:
    line = place.below.get(key, place).line
    item = value.get(key)
    if item is None or item == "":
        hint = ""
        if key == "name" and value.get("generateName"):
            hint = ": a described object needs a name of its own, generateName is not enough"
        yield line, path, f"is missing{hint}"
    elif not isinstance(item, str):
        yield line, path, f"must be text, not {_called(item)}: put it in quotes"


def _called(value: Json) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"
