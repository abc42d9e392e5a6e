"""What is particular about a `TerraformMachine` (reconcile.md: Machines)."""

from collections.abc import Sequence
from typing import ClassVar

from captfctl.cluster.door import Door
from captfctl.model import keys
from captfctl.model.capi import Machine
from captfctl.model.conditions import ConditionValue
from captfctl.model.events import Note
from captfctl.model.kinds import MACHINE, Kind
from captfctl.model.machine import TerraformMachine
from captfctl.model.reasons import InfrastructureHealthy
from captfctl.model.resource import Resource
from captfctl.model.resources import TERRAFORM_MACHINES
from captfctl.reconcile.cache import CacheReader
from captfctl.reconcile.kinds.remediation import UNHEALTHY, remediate
from captfctl.reconcile.kinds.rules import Applied, Built, Mapped, values_of
from captfctl.reconcile.kinds.workers import Belongings
from captfctl.terraform.contract.build_workers import build_machine_inputs
from captfctl.terraform.contract.effective import Config, Flags, OwnSettings, machine_config
from captfctl.terraform.contract.mapping_machine import map_machine
from captfctl.terraform.contract.outputs_workers import decode_machine
from captfctl.terraform.state.reader import State
from captfctl.terraform.state.records import Records


class MachineRules:
    """See `KindRules`."""

    kind: ClassVar[Kind] = MACHINE
    resource: ClassVar[Resource[TerraformMachine]] = TERRAFORM_MACHINES
    mutable: ClassVar[bool] = False
    counted_by: ClassVar[str] = keys.INPUTS_HASH
    refresh_after_apply: ClassVar[bool] = True
    keeps_plans: ClassVar[bool] = False
    ready_with_apply: ClassVar[bool] = False
    converging: ClassVar[bool] = False
    shown_plan: ClassVar[str] = ""

    def __init__(self, obj: TerraformMachine, cache: CacheReader) -> None:
        self.obj = obj
        self._belongs = Belongings(cache, MACHINE, obj, cache.machine)
        self.lookup = self._belongs.lookup

    def config(self, flags: Flags) -> Config:
        """Its own fields, over what its cluster gives its machines, over the cluster's own."""
        spec = self.obj.spec
        own = OwnSettings(
            identity=spec.identity_ref,
            jobs=spec.jobs,
            drift_interval=spec.drift.interval_seconds if spec.drift else None,
            remediation=spec.remediation,
            deletion_policy=spec.deletion_policy,
            deletion_protection=spec.deletion_protection,
            owner_ends=self._belongs.owner_ends,
        )
        return machine_config(own, self._belongs.infrastructure, flags)

    def dependents(self, _door: Door) -> str:
        """Nothing depends on a machine."""
        return ""

    def build(self, door: Door, _records: Records, _applied: Applied) -> Built | ConditionValue:
        """See `KindRules`. Asked for until the machine is provisioned, and never after."""
        given = self._belongs.given(door)
        if isinstance(given, ConditionValue):
            return given
        return Built(
            build_machine_inputs(
                self.obj, given.cluster, given.owner, given.exports.exports, given.bootstrap
            )
        )

    def map_outputs(self, state: State, _records: Records) -> Mapped:
        """Provider id, addresses and placement (module-contract.md: What outputs change)."""
        mapped = map_machine(
            self.obj,
            self._belongs.owner,
            decode_machine(values_of(state)),
            state_has_hash=bool(state.inputs_hash),
        )
        spec, status = self.obj.spec, self.obj.status
        spec.provider_id = mapped.provider_id
        status.addresses = list(mapped.addresses)
        status.failure_domain = mapped.failure_domain
        status.interruptible = mapped.interruptible
        return Mapped(
            outputs_valid=mapped.outputs_valid,
            healthy=mapped.infrastructure_healthy,
            provisioned=mapped.provisioned,
            notes=mapped.notes,
        )

    def sample(self, health: str) -> None:
        """Count unhealthy readings in a row; one that tells nothing changes nothing."""
        if health == InfrastructureHealthy.HEALTHY:
            self.obj.status.unhealthy_samples = 0
        elif health in UNHEALTHY:
            self.obj.status.unhealthy_samples += 1

    def follow_up(self, door: Door, health: str, config: Config) -> Sequence[Note]:
        """Ask Cluster API to replace an unhealthy machine, or take that back."""
        if self._belongs.owner is None:
            return ()
        return remediate(door, self.obj, self._belongs.owner, health, config)

    def show_plan(self, _name: str) -> None:
        """It is never changed, so nothing of it waits."""

    def depends_on(self, _door: Door) -> object | None:
        """Its Machine and Cluster, and what it inherits. Until it is provisioned also on what the
        inputs are built from, which is not in the caches."""
        started = self.obj.status.initialization
        cluster, infrastructure = self.lookup.cluster, self._belongs.infrastructure
        if started is None or not started.provisioned:
            return None
        if self._belongs.owner is None or cluster is None or infrastructure is None:
            return None
        return (
            _seen(self._belongs.owner),
            (cluster.metadata.uid, cluster.spec.paused, cluster.spec.infrastructure_ref),
            (infrastructure.metadata.uid, infrastructure.spec),
        )


def _seen(machine: Machine) -> object:
    meta = machine.metadata
    marks = {key: meta.annotations.get(key) for key in (keys.REMEDIATE, keys.REMEDIATION_REQUESTED)}
    return meta.uid, meta.deletion_timestamp, machine.spec, marks
