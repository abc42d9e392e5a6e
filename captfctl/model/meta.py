"""The parts every API object has: metadata, owner references, conditions."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from captfctl.model.schema import rule

Time = datetime


def micro_time(moment: datetime) -> str:
    """A `metav1.MicroTime`: with exactly six fractional digits, as Lease and Event need it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime | None:
    """A time written in RFC 3339 by anybody; None when it is not one."""
    try:
        moment = msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def seconds_stamp(moment: datetime | None) -> str:
    """RFC 3339 in UTC, whole seconds; empty for never."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def whole_seconds(moment: datetime) -> datetime:
    """`metav1.Time` keeps no fractions; cut them before comparing with what a server returned."""
    return moment.replace(microsecond=0)


class Part(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """A struct inside an API object. Zero values are not written, as in Kubernetes' own types.

    What comes from JSON is a tree: without cycles there is nothing for the garbage collector to
    find, and searching thousands of objects for them takes longer than decoding them.
    """


class OwnerReference(Part):
    """A `metav1.OwnerReference`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Part):
    """A `metav1.ObjectMeta`, with the fields captfctl uses."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: list[OwnerReference] = msgspec.field(default_factory=list)
    finalizers: list[str] = msgspec.field(default_factory=list)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference marked as the controller, if any."""
        return next((ref for ref in self.owner_references if ref.controller), None)


class ApiObject(Part):
    """A whole API object."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def deleting(self) -> bool:
        """Whether its deletion was requested."""
        return self.metadata.deletion_timestamp is not None


class PartialObject(ApiObject):
    """Any object, metadata only."""


class Condition(Part):
    """A `metav1.Condition`."""

    type: Annotated[str, rule(minLength=1, maxLength=316)]
    status: Annotated[str, rule(enum=["True", "False", "Unknown"])]
    reason: Annotated[str, rule(maxLength=1024)] = ""
    message: Annotated[str, rule(maxLength=32768)] = ""
    last_transition_time: Time | None = None
    observed_generation: Annotated[int, rule(minimum=0)] = 0


class LabelSelector(Part):
    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: list["LabelSelectorRequirement"] = msgspec.field(default_factory=list)


class LabelSelectorRequirement(Part):
    key: str
    operator: str
    values: list[str] = msgspec.field(default_factory=list)
