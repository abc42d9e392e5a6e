"""What a pass works with, handed in so that time, chance and failure are parameters."""

from collections.abc import Callable
from dataclasses import dataclass

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.reconcile.cache import CacheReader
from captfctl.reconcile.events import Recorder
from captfctl.reconcile.metrics import Metrics
from captfctl.runs.leases import Leases
from captfctl.runs.slots import Slots
from captfctl.runs.start import Starter
from captfctl.settings import PassSettings
from captfctl.terraform.contract.module_variables import SchemaOf, no_schema
from captfctl.terraform.job.build import RunnerSettings
from captfctl.terraform.job.run import RunSpec
from captfctl.terraform.job.work import TerraformWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """`door` reads and writes live, `cache` may be a moment late.

    `random_bytes(n)` makes keys; it must be unpredictable outside tests. `slots` belongs to the
    process and outlives its passes. `schema_of` knows the variables of modules.
    """

    door: Door
    cache: CacheReader
    clock: Clock
    settings: PassSettings
    recorder: Recorder
    metrics: Metrics
    random_bytes: Callable[[int], bytes]
    slots: Slots
    schema_of: SchemaOf = no_schema

    @property
    def leases(self) -> Leases:
        return Leases(self.door, self.cache, self.clock, gate=self.settings.cluster_operation_gate)

    @property
    def starter(self) -> Starter:
        patience = self.settings.start_patience.total_seconds()
        return Starter(self.door, self.leases, self.slots, self.clock, patience=patience)

    def work(self, run: RunSpec) -> TerraformWork:
        """The Terraform side of starting `run`."""
        runner = RunnerSettings(
            image=self.settings.runner_image, events=self.settings.runner_events
        )
        return TerraformWork(self.door, run, runner, self.random_bytes, self.cache.secret)
