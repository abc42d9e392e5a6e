"""What is particular about an object because of its kind (reconcile.md: Kinds).

A pass is the same for every kind. Where kinds differ, it asks the `KindRules` of its object.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

from captfctl.cluster.door import Door
from captfctl.model import keys, names
from captfctl.model.capi import Cluster, Machine, MachinePool
from captfctl.model.conditions import ConditionValue, Type
from captfctl.model.events import Note
from captfctl.model.kinds import INFRASTRUCTURE, Kind
from captfctl.model.machine import TerraformMachinePool
from captfctl.model.meta import OwnerReference
from captfctl.model.owner import Owner
from captfctl.model.reasons import DependenciesReady
from captfctl.model.resource import Resource
from captfctl.model.resources import CAPI
from captfctl.model.status import PendingPlanRef
from captfctl.model.terraform import TerraformCluster, TerraformObject
from captfctl.reconcile.cache import CacheReader
from captfctl.settings import PassSettings
from captfctl.terraform.contract.effective import Config, Flags
from captfctl.terraform.contract.values import ContractInputs
from captfctl.terraform.state.reader import State
from captfctl.terraform.state.records import Records
from runner import wire

CapiOwner: TypeAlias = Cluster | Machine | MachinePool


@dataclass(frozen=True, slots=True)
class OwnerLookup:
    """What an object belongs to, as far as it is known.

    `reference`: to its owner in Cluster API. `cluster`: the Cluster it belongs to, when that exists
    and may own it. `gate`: why it may not, for `DependenciesReady`. `cluster_name` is also known
    when the Cluster is gone; empty when it is not.
    """

    reference: OwnerReference | None
    cluster: Cluster | None = None
    gate: ConditionValue | None = None
    cluster_name: str = ""

    @property
    def missing(self) -> ConditionValue:
        """Why there is no owner to go on with."""
        if self.gate is not None:
            return self.gate
        if self.reference is None:
            return WAITING_FOR_OWNER
        return DependenciesReady.OWNER_NOT_FOUND.says(
            f"{self.reference.kind} {self.reference.name}, which owns this object, does not exist"
        )


WAITING_FOR_OWNER = DependenciesReady.WAITING_FOR_OWNER.says(
    "Cluster API has not set the owner reference of a Cluster yet"
)


@dataclass(frozen=True, slots=True)
class GuardedChange:
    """That inputs have something new which may replace everything.

    `exports_hash` is the hash of the new. `before` are the same inputs without it, with which other
    changes can be applied while it waits; `unheld` says why there are none. `partial`: a part of
    something new may be there, so that not even the inputs of the state are what is there.
    """

    exports_hash: str
    before: ContractInputs | None = None
    unheld: str = ""
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """The inputs of an object. `annotations` are to be set on it, or removed where None, once
    every gate has passed. `conditions` are the kind's own."""

    inputs: ContractInputs
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    conditions: tuple[tuple[Type, ConditionValue], ...] = ()
    change: GuardedChange | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a state's outputs say about an object, besides the fields that its kind has set on it.

    `healthy` None: no apply has succeeded yet. `notes` are true once the object is written.
    """

    outputs_valid: ConditionValue
    healthy: ConditionValue | None
    provisioned: bool
    conditions: tuple[tuple[Type, ConditionValue], ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """What is there that inputs would be applied to. `state_hash`: the inputs hash recorded on the
    state, `own_first`: it is what first applies left that did not get through."""

    exists: bool = False
    state_hash: str = ""
    own_first: bool = False


class WithPlans:
    """Of kinds whose changes may wait for an approval."""

    obj: TerraformCluster | TerraformMachinePool
    keeps_plans: ClassVar[bool] = True

    @property
    def shown_plan(self) -> str:
        """The plan that its status names."""
        shown = self.obj.status.pending_plan_ref
        return shown.name if shown is not None else ""

    def show_plan(self, name: str) -> None:
        """Name the plan in its status."""
        self.obj.status.pending_plan_ref = PendingPlanRef(name=name) if name else None


class KindRules(Protocol):
    """One object, seen as its kind sees it."""

    kind: ClassVar[Kind]
    resource: ClassVar[Resource[Any]]
    mutable: ClassVar[bool]
    """Whether changed inputs are applied to what is there."""
    counted_by: ClassVar[str]
    """The annotation of Jobs that tells which inputs they had, for counting failures."""
    keeps_plans: ClassVar[bool]
    """Whether changes of it may wait for an approval."""
    ready_with_apply: ClassVar[bool]
    """Whether what exists is no longer ready when a change of it fails."""
    refresh_after_apply: ClassVar[bool]
    """Whether an apply is followed by a reading of what became of it."""

    def __init__(self, obj: Any, cache: CacheReader, /) -> None: ...

    @property
    def obj(self) -> TerraformObject:
        """The object, which the pass changes."""
        ...

    @property
    def lookup(self) -> OwnerLookup:
        """What it belongs to, from the caches."""
        ...

    def config(self, flags: Flags) -> Config:
        """Its effective configuration (api.md: Effective configuration)."""
        ...

    def dependents(self, door: Door, /) -> str:
        """What must be gone before it may be destroyed, in words; empty for nothing. Read live."""
        ...

    def build(self, door: Door, records: Records, applied: Applied, /) -> Built | ConditionValue:
        """The inputs it would be applied with now, or the gate that is closed.

        Raises `ContractError` when a record cannot be read.
        """
        ...

    def map_outputs(self, state: State, records: Records, /) -> Mapped:
        """Set the fields that follow from the outputs; give what the pass has to set."""
        ...

    def sample(self, health: str, /) -> None:
        """Take note of a new reading of what was provisioned: a reason of
        `InfrastructureHealthy`."""
        ...

    def follow_up(self, door: Door, health: str, config: Config, /) -> Sequence[Note]:
        """What is to be written to what the object belongs to, once the object is written.

        `health` is the reason of its `InfrastructureHealthy`. Gives the events of what changed.
        """
        ...

    @property
    def converging(self) -> bool:
        """Whether the infrastructure does not have all the members yet that it is to have."""
        ...

    @property
    def shown_plan(self) -> str:
        """The plan that its status names as the one that waits; empty for none."""
        ...

    def show_plan(self, name: str, /) -> None:
        """Name the plan that waits, or none, in its status."""
        ...

    def depends_on(self, door: Door, /) -> object | None:
        """All that the object depends on, of what it belongs to, in JSON's types. None: some of it
        is not in the caches (reconcile.md: Objects at rest)."""
        ...


def owner_reference(obj: TerraformObject, kind: Kind) -> OwnerReference | None:
    """The reference to the object of Cluster API that owns it."""
    for reference in obj.metadata.owner_references:
        group = reference.api_version.partition("/")[0]
        if reference.kind == kind.owner and group == CAPI:
            return reference
    return None


def owner_gate(
    kind: Kind,
    obj: TerraformObject,
    reference: OwnerReference,
    owner: CapiOwner,
) -> ConditionValue | None:
    """Why the owner that the reference names may not own the object; None when it may
    (reconcile.md: The owning Cluster)."""
    problem = _owner_problem(kind, obj, reference, owner)
    if not problem:
        return None
    return DependenciesReady.OWNER_MISMATCH.says(f"{reference.kind} {reference.name}: {problem}")


def _owner_problem(
    kind: Kind, obj: TerraformObject, reference: OwnerReference, owner: CapiOwner
) -> str:
    """Which of the three owner checks fails, in words."""
    back = owner.infrastructure
    wanted = (INFRASTRUCTURE, kind.name, obj.metadata.name)
    if back is None or (back.api_group, back.kind, back.name) != wanted:
        return f"its infrastructureRef does not name {kind.name} {obj.metadata.name}"
    if reference.uid and reference.uid != owner.metadata.uid:
        return f"its UID {owner.metadata.uid} is not {reference.uid}, the owner reference's"
    label = obj.metadata.labels.get(keys.CLUSTER_NAME, "")
    if label and label != names.label_value(owner.cluster_name):
        return f"the object's label {keys.CLUSTER_NAME} names {label}, not {owner.cluster_name}"
    return ""


def owner_of(rules: KindRules) -> Owner:
    """The object as the owner of its Jobs and Secrets."""
    meta = rules.obj.metadata
    cluster = meta.labels.get(keys.CLUSTER_NAME, "") or rules.lookup.cluster_name
    return Owner(rules.kind.name, meta.namespace, meta.name, meta.uid, cluster)


def paused_by(rules: KindRules) -> str:
    """What pauses the object, in words; empty when nothing does."""
    cluster = rules.lookup.cluster
    if keys.PAUSED in rules.obj.metadata.annotations:
        return f"the object carries the annotation {keys.PAUSED}"
    if cluster is not None and cluster.spec.paused:
        return f"spec.paused of Cluster {cluster.metadata.name} is true"
    return ""


def values_of(state: State) -> Mapping[str, Any]:
    """The outputs of a state by name."""
    return {name: output.value for name, output in state.outputs.items()}


def effective(rules: KindRules, settings: PassSettings) -> Config:
    """The object's effective configuration under the settings of this manager."""
    flags = Flags(
        drift_interval=settings.drift_default_interval,
        max_active_jobs=settings.cluster_max_active_jobs,
    )
    return rules.config(flags)


def previous_tfvars(records: Records) -> bytes | None:
    """What the last attempt rendered; None before the first."""
    return records.attempt.files.get(wire.VARIABLES_FILE) if records.attempt is not None else None
