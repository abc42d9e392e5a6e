"""Which resources are served, and what is known about each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from captfctl.embedded.schemas import Node
from captfctl.embedded.store.strategy import Strategy
from captfctl.embedded.store.views import View
from captfctl.embedded.store.violations import not_served
from captfctl.model.resource import Document, Resource

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")


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
    resource share it, and so do the two views of events. `published` is a custom kind's schema in
    its definition's own words. `columns` are the printer columns of a CRD, without the Age column
    that a server adds when there are none. `selectable` are the field selectors beyond
    metadata.name and metadata.namespace. `custom`: defined by a CustomResourceDefinition.
    """

    resource: Resource[Document]
    storage: str
    singular: str
    schema: Node = field(repr=False, compare=False)
    strategy: Strategy = field(repr=False, compare=False)
    view: View = field(repr=False, compare=False)
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    published: Document | None = field(default=None, repr=False, compare=False)
    columns: tuple[PrinterColumn, ...] = ()
    list_kind: str = ""
    custom: bool = False
    selectable: tuple[str, ...] = ()

    @property
    def status(self) -> bool:
        """Whether it has a status subresource."""
        return self.strategy.has_status

    @property
    def names(self) -> frozenset[str]:
        """Every name a person may call it by, in lower case."""
        resource = self.resource
        plain = (resource.plural, self.singular, resource.kind, *self.short_names)
        return frozenset(name.lower() for name in plain)


class Registry:
    """The served resources: safe to read from any thread, changed by the store only.

    `version` grows with every change, for caches of discovery documents.
    """

    def __init__(self, builtin: list[Served]) -> None:
        self.version = 0
        self._builtin = builtin
        self._custom: dict[str, list[Served]] = {}
        self._by_plural: dict[tuple[str, str, str], Served] = {}
        self._by_kind: dict[tuple[str, str], Served] = {}
        self._rebuild()

    def __iter__(self) -> Iterator[Served]:
        """Built-in kinds first, then by group, plural and preference of version."""
        return iter(tuple(self._by_plural.values()))

    def find(self, group: str, version: str, plural: str) -> Served:
        """Raises `NotFound` when it is not served."""
        served = self._by_plural.get((group, version, plural))
        if served is None:
            raise not_served()
        return served

    def find_kind(self, api_version: str, kind: str) -> Served:
        """By the apiVersion and kind that an object carries. Raises `NotFound`."""
        served = self._by_kind.get((api_version, kind))
        if served is None:
            raise not_served()
        return served

    def groups(self) -> dict[str, list[str]]:
        """Every served group with its versions, the preferred one first."""
        groups: dict[str, list[str]] = {}
        for served in self:
            versions = groups.setdefault(served.resource.group, [])
            if served.resource.version not in versions:
                versions.append(served.resource.version)
        return {group: sorted(versions, key=version_order) for group, versions in groups.items()}

    def of_storage(self, storage: str) -> list[Served]:
        """The served versions and views of one collection, the preferred one first."""
        return [served for served in self if served.storage == storage]

    def put(self, definition: str, versions: list[Served]) -> None:
        """What the CRD of that name serves from now on; none: nothing."""
        if versions:
            ordered = sorted(versions, key=lambda served: version_order(served.resource.version))
            self._custom[definition] = ordered
        else:
            self._custom.pop(definition, None)
        self._rebuild()

    def _rebuild(self) -> None:
        served = [*self._builtin]
        for name in sorted(self._custom, key=lambda name: name.partition(".")[::-1]):
            served += self._custom[name]
        # New dictionaries in place of the old ones: readers take no lock.
        self._by_plural = {
            (item.resource.group, item.resource.version, item.resource.plural): item
            for item in served
        }
        self._by_kind = {(item.resource.api_version, item.resource.kind): item for item in served}
        self.version += 1


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sorts versions by preference: v2, v1, v1beta2, v1beta1, v1alpha1, then the rest by name."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (stage, -int(found[1]), -int(found[3] or 0), "")
