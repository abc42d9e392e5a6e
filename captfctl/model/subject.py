"""Whose runs the engine runs: what it has to know of an object, whatever its kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from captfctl.model.meta import ObjectMeta


@dataclass(frozen=True, slots=True)
class Group:
    """Subjects that share a limit of running Jobs, and a gate between one of them and the rest.

    Operations named in `exclusive` of the subject of kind `leader` and those of all other members
    never run at the same time. `lease` is the Lease by which the leader keeps the others out.
    """

    name: str
    lease: str
    leader: str
    exclusive: frozenset[str]


class Subject(Protocol):
    """An object whose runs are Jobs. Only immutable identity is in here."""

    @property
    def kind(self) -> str: ...

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def uid(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels by which its Jobs are found."""
        ...

    @property
    def run_labels(self) -> Mapping[str, str]:
        """All labels that its Jobs, their pods and its Leases carry."""
        ...

    @property
    def run_lease(self) -> str:
        """The name of the Lease that keeps its runs apart."""
        ...

    @property
    def group(self) -> Group | None:
        """What it shares with others; None when it shares nothing, or nothing is known."""
        ...

    def controls(self, metadata: ObjectMeta) -> bool:
        """Whether exactly this object, not an earlier one of the name, is the controller."""
        ...
