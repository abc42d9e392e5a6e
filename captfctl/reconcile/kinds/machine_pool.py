"""What is particular about a `TerraformMachinePool` (reconcile.md: Pools)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from captfctl.cluster.door import Door
from captfctl.model import keys
from captfctl.model.conditions import ConditionValue, Type
from captfctl.model.events import Note
from captfctl.model.kinds import MACHINE_POOL, Kind
from captfctl.model.machine import TerraformMachinePool
from captfctl.model.resource import Resource
from captfctl.model.resources import TERRAFORM_MACHINE_POOLS
from captfctl.reconcile.cache import CacheReader
from captfctl.reconcile.kinds.replicas import write_back, write_back_is_due
from captfctl.reconcile.kinds.rules import (
    Applied,
    Built,
    GuardedChange,
    Mapped,
    WithPlans,
    values_of,
)
from captfctl.reconcile.kinds.workers import Belongings
from captfctl.terraform.contract.autoscaling import autoscaling_of
from captfctl.terraform.contract.build_workers import applied_exports, build_pool_inputs
from captfctl.terraform.contract.effective import Config, Flags, OwnSettings, pool_config
from captfctl.terraform.contract.hashing import exports_hash
from captfctl.terraform.contract.mapping_pool import map_pool
from captfctl.terraform.contract.outputs_workers import decode_pool
from captfctl.terraform.contract.values import MachinePoolInputs
from captfctl.terraform.state.reader import State
from captfctl.terraform.state.records import Records
from runner import wire


class MachinePoolRules(WithPlans):
    """See `KindRules`."""

    kind: ClassVar[Kind] = MACHINE_POOL
    resource: ClassVar[Resource[TerraformMachinePool]] = TERRAFORM_MACHINE_POOLS
    mutable: ClassVar[bool] = True
    counted_by: ClassVar[str] = keys.APPROVAL_HASH
    refresh_after_apply: ClassVar[bool] = True
    ready_with_apply: ClassVar[bool] = True

    obj: TerraformMachinePool

    def __init__(self, obj: TerraformMachinePool, cache: CacheReader) -> None:
        self.obj = obj
        self._belongs = Belongings(cache, MACHINE_POOL, obj, cache.machine_pool)
        self.lookup = self._belongs.lookup

    def config(self, flags: Flags) -> Config:
        """Its own fields, over what its cluster gives its pools, over the cluster's own."""
        spec = self.obj.spec
        own = OwnSettings(
            identity=spec.identity_ref,
            jobs=spec.jobs,
            drift_interval=spec.drift.interval_seconds if spec.drift else None,
            drift_action=spec.drift.action if spec.drift else None,
            membership_interval=spec.membership_refresh_interval_seconds,
            deletion_policy=spec.deletion_policy,
            deletion_protection=spec.deletion_protection,
            owner_ends=self._belongs.owner_ends,
        )
        return pool_config(own, self._belongs.infrastructure, flags)

    def dependents(self, _door: Door) -> str:
        """Nothing depends on a pool."""
        return ""

    def build(self, door: Door, records: Records, applied: Applied) -> Built | ConditionValue:
        """A change of the cluster's exports may replace every member, so it is guarded
        (plans.md: Changed exports of a pool)."""
        given = self._belongs.given(door)
        if isinstance(given, ConditionValue):
            return given
        autoscaling, active = autoscaling_of(given.owner.metadata.annotations)
        inputs = build_pool_inputs(
            self.obj,
            given.cluster,
            given.owner,
            given.exports.exports,
            given.exports.failure_domains,
            given.bootstrap,
            autoscaling,
        )
        change = _guarded_change(inputs, records, applied)
        return Built(inputs, conditions=((Type.AUTOSCALING_ACTIVE, active),), change=change)

    def map_outputs(self, state: State, _records: Records) -> Mapped:
        """Provider ids, members and their number (module-contract.md: What outputs change)."""
        outputs = decode_pool(values_of(state))
        mapped = map_pool(self.obj, outputs, state_has_hash=bool(state.inputs_hash))
        spec, status = self.obj.spec, self.obj.status
        spec.provider_id = mapped.provider_id
        spec.provider_id_list = list(mapped.provider_id_list)
        status.replicas = mapped.replicas
        status.instances = list(mapped.instances)
        status.ready = status.ready or mapped.provisioned
        return Mapped(
            outputs_valid=mapped.outputs_valid,
            healthy=mapped.infrastructure_healthy,
            provisioned=mapped.provisioned,
            notes=mapped.notes,
        )

    def sample(self, _health: str) -> None:
        """Nothing is counted."""

    def follow_up(self, door: Door, _health: str, _config: Config) -> Sequence[Note]:
        """Tell the MachinePool how many members an autoscaled pool has."""
        pool = self._belongs.owner
        return () if pool is None or self.obj.deleting else write_back(door, self.obj, pool)

    @property
    def converging(self) -> bool:
        """Whether it has another number of members than it is to have."""
        return len(self.obj.spec.provider_id_list) != (self.obj.status.replicas or 0)

    def depends_on(self, door: Door) -> object | None:
        """Its MachinePool and Cluster, what it inherits, and what its inputs are built from."""
        pool, cluster = self._belongs.owner, self.lookup.cluster
        if pool is None or cluster is None or write_back_is_due(self.obj, pool):
            return None
        given = self._belongs.given_versions(door)
        if given is None:
            return None
        meta = pool.metadata
        return (
            (meta.uid, meta.deletion_timestamp, meta.annotations, pool.spec),
            (cluster.metadata.uid, cluster.spec, cluster.status.initialization),
            given,
        )


def _guarded_change(
    inputs: MachinePoolInputs, records: Records, applied: Applied
) -> GuardedChange | None:
    """What the inputs have of exports that the last successful apply did not have; None: nothing,
    or there is nothing yet that could be replaced."""
    if not applied.exists or applied.own_first:
        return None
    wanted = exports_hash(inputs.cluster_outputs)
    job = records.marks.partial_exports
    if job:
        text = f"Job {job} may have applied a part of changed exports of the cluster"
        return GuardedChange(wanted, unheld=text, partial=True)
    before = records.applied
    recorded = before.files.get(wire.VARIABLES_FILE) if before is not None else None
    if before is None or recorded is None or before.inputs_hash != applied.state_hash:
        return GuardedChange(
            wanted, unheld="it is not known which exports of the cluster were applied"
        )
    kept = applied_exports(recorded)
    if exports_hash(kept) == wanted:
        return None
    return GuardedChange(wanted, before=replace(inputs, cluster_outputs=kept))
