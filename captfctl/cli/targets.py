"""The objects that a command follows, and the order in which described ones are written."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from captfctl.errors import InputError
from captfctl.model.kinds import INFRASTRUCTURE, KINDS
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CAPI,
    CLUSTERS,
    MACHINE_POOLS,
    MACHINES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)

if TYPE_CHECKING:
    from captfctl.embedded.described import Described, DescribedSet


class Target(NamedTuple):
    """One object that has runs."""

    kind: str
    namespace: str
    name: str

    @property
    def resource(self) -> Resource[Any]:
        """Where it is served."""
        return _BY_KIND[self.kind]

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def shown(self) -> str:
        """As kubectl calls it, with a namespace that is not default."""
        prefix = "" if self.namespace == "default" else f"{self.namespace}/"
        return f"{self.kind.lower()}/{prefix}{self.name}"


class Named(NamedTuple):
    """One object that a person names on the command line."""

    resource: Resource[Any]
    namespace: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def shown(self) -> str:
        """As `Target` shows it."""
        return Target(self.resource.kind, self.namespace, self.name).shown


OURS: tuple[tuple[Resource[Any], str], ...] = (
    (TERRAFORM_CLUSTERS, "tfc"),
    (TERRAFORM_MACHINES, "tfm"),
    (TERRAFORM_MACHINE_POOLS, "tfmp"),
)
"""The kinds that have runs, with their short names."""
OWNERS: tuple[tuple[Resource[Any], str], ...] = (
    (CLUSTERS, "cl"),
    (MACHINES, "ma"),
    (MACHINE_POOLS, "mp"),
)
"""The kinds of Cluster API that own them."""
_BY_KIND: dict[str, Resource[Any]] = {resource.kind: resource for resource, _ in OURS}


def named(text: str, namespace: str, kinds: Sequence[tuple[Resource[Any], str]]) -> Named:
    """The object that KIND/NAME stands for, its kind one of `kinds` in any spelling that kubectl
    takes. Raises `InputError`."""
    kind, slash, name = text.partition("/")
    names = {
        spelling: resource
        for resource, short in kinds
        for spelling in (
            resource.kind.lower(),
            resource.plural,
            resource.name,
            f"{resource.kind.lower()}.{resource.group}",
            short,
        )
    }
    resource = names.get(kind.lower())
    if resource is None or not slash or not name or "/" in name:
        known = ", ".join(resource.kind.lower() for resource, _ in kinds)
        raise InputError(
            f"{text!r} does not name an object", do=f"write KIND/NAME, KIND one of {known}"
        )
    return Named(resource, namespace or "default", name)


def target_of(item: "Described | Named") -> Target | None:
    """None for an object that has no runs."""
    ours = item.resource.group == INFRASTRUCTURE and item.resource.kind in KINDS
    return Target(item.resource.kind, item.namespace, item.name) if ours else None


def targets(described: "DescribedSet") -> list[Target]:
    """The described objects that have runs, clusters first."""
    found = [target for item in described if (target := target_of(item)) is not None]
    return sorted(found, key=lambda target: not KINDS[target.kind].leads)


def in_order_of_creation(described: "DescribedSet") -> "list[Described]":
    """As the files have them, but machines and pools last: a cluster never waits for them."""
    return sorted(described, key=lambda item: _group(item) in _groups(leads=False))


def deleted_first(described: "DescribedSet") -> "list[Described]":
    """What has infrastructure, machines and pools before clusters. Everything else is needed until
    that is gone."""
    return [
        item
        for leads in (False, True)
        for group in _groups(leads=leads)
        for item in described
        if _group(item) == group
    ]


def _group(item: "Described") -> tuple[str, str]:
    return item.resource.group, item.resource.kind


def _groups(*, leads: bool) -> list[tuple[str, str]]:
    """Group and kind of what Cluster API has of these kinds, then of what we have."""
    kinds = [kind for kind in KINDS.values() if kind.leads == leads]
    return [(CAPI, kind.owner) for kind in kinds] + [(INFRASTRUCTURE, kind.name) for kind in kinds]
