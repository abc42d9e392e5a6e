"""Described objects: a document and where each of its fields stands."""

from dataclasses import dataclass

from captfctl.errors import InputError, Source
from captfctl.model.resource import Document, Resource


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with the input; `field` is a path like `spec.source.image`, or empty."""

    source: Source
    message: str
    field: str = ""

    def __str__(self) -> str:
        field = f" {self.field}:" if self.field else ""
        return f"{self.source}:{field} {self.message}"


class BadInput(InputError):
    """The described objects cannot be used; `violations` has everything wrong with all files."""

    code = "InvalidObjects"

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        super().__init__("\n".join(map(str, violations)))
        self.violations = violations


@dataclass(frozen=True, slots=True)
class Described:
    """One object of a file."""

    resource: Resource[Document]
    document: Document
    source: Source

    def place(self, field: str) -> Source:
        """Where `field` stands, or what encloses it when it is not written."""
        raise NotImplementedError


class DescribedSet:
    """All objects of the files."""

    objects: tuple[Described, ...]

    def source_of(self, kind: str, namespace: str, name: str, field: str = "") -> Source | None:
        """Where an object, or one of its fields, stands; None when no file describes it."""
        raise NotImplementedError
