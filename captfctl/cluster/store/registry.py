"""Which resources are served, and what is known about each."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from captfctl.cluster.errors import NotFound
from captfctl.model.resource import Document, Resource


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One column that `kubectl get` shows; `priority` above 0: only with `-o wide`."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One resource in one version.

    `storage` names the collection its objects are kept in (`jobs.batch`); the versions of one
    resource share it, and so do the two views of events. `schema` is the structural schema in the
    form CRDs use, `None` when anything goes. `columns` are the printer columns of a CRD, without
    the Age column that a server adds when there are none.
    """

    resource: Resource[Document]
    storage: str
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False
    schema: Document | None = None
    columns: tuple[PrinterColumn, ...] = ()
    list_kind: str = ""
    custom: bool = False
    """Defined by a CustomResourceDefinition."""
    selectable: tuple[str, ...] = ()
    """Field selectors beyond metadata.name and metadata.namespace."""

    @property
    def names(self) -> frozenset[str]:
        """Every name a person may call it by, in lower case."""
        resource = self.resource
        plain = (resource.plural, self.singular, resource.kind, *self.short_names)
        return frozenset(name.lower() for name in plain)


@dataclass(slots=True)
class Registry:
    """The served resources: safe to read from any thread, changed by the store only.

    `version` grows with every change, for caches of discovery documents.
    """

    version: int = 0
    _served: dict[tuple[str, str, str], Served] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Served]:
        """Built-in kinds first, then by group, version and plural."""
        raise NotImplementedError

    def find(self, group: str, version: str, plural: str) -> Served:
        """Raises `NotFound` with the server's words when it is not served."""
        raise NotImplementedError

    def find_kind(self, api_version: str, kind: str) -> Served:
        """By the apiVersion and kind that an object carries. Raises `NotFound`."""
        raise NotImplementedError

    def groups(self) -> dict[str, list[str]]:
        """Every served group with its versions, the preferred one first."""
        raise NotImplementedError
