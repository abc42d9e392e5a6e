"""What every object with runs reports (api.md: TerraformCluster).

Nothing here is load-bearing: all of it is rebuilt from Secrets, Jobs and metadata after a move or a
cleared status.
"""

from typing import Annotated, ClassVar

import msgspec

from captfctl.model.meta import Condition, Part, Time
from captfctl.model.ops import Op
from captfctl.model.schema import NOT_EMPTY, Schema, map_by, rule
from runner import wire

Conditions = Annotated[list[Condition], rule(maxItems=32, **map_by("type"))]
Address = Annotated[str, rule(minLength=1, maxLength=512)]


class Initialization(Part):
    provisioned: bool = False
    """Set once the infrastructure is there, and never unset."""


class ActiveJob(Part):
    """The Job that runs for this object."""

    name: Annotated[str, rule(minLength=1, maxLength=63)] = ""
    operation: Op | None = None
    attempt: Annotated[int, rule(minimum=1)] = 0
    start_time: Time | None = None


class RunStep(Part):
    """One step of a run."""

    name: Annotated[str, rule(minLength=1, maxLength=64)]
    exit_code: int
    duration_milliseconds: Annotated[int, rule(minimum=0)]


class RunError(Part):
    """Why a run failed."""

    kind: Annotated[str, rule(enum=list(wire.ERROR_KINDS))] = ""
    step: Annotated[str, rule(minLength=1, maxLength=64)] = ""
    """The failing step."""
    summary: Annotated[str, rule(minLength=1, maxLength=512)] = ""
    resources: Annotated[list[Address], rule(minItems=1, maxItems=10)] = msgspec.field(
        default_factory=list
    )
    """Addresses of the resources that failed."""


class DriftSummary(Part):
    """What a drift check found: numbers of changes that would undo the drift."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    create: Annotated[int, rule(minimum=0)] = 0
    update: Annotated[int, rule(minimum=0)] = 0
    replace: Annotated[int, rule(minimum=0)] = 0
    delete: Annotated[int, rule(minimum=0)] = 0
    resources: Annotated[list[Address], rule(minItems=1, maxItems=20)] = msgspec.field(
        default_factory=list
    )
    """Addresses of the first drifted resources."""


class LastRun(Part):
    """The newest finished run."""

    job: str = ""
    operation: Op | None = None
    steps: Annotated[list[RunStep], rule(minItems=1, maxItems=16)] = msgspec.field(
        default_factory=list
    )
    error: RunError | None = None
    drift: DriftSummary | None = None


class SourceStatus(Part):
    """What the last apply used."""

    image: str = ""
    image_digest: str = ""
    runtime_version: Annotated[str, rule(minLength=1, maxLength=64)] = ""


class StateBackup(Part):
    """One backup of the Terraform state; `bytes` is its compressed size."""

    serial: int
    taken_at: Time | None = None
    bytes: int = 0


class PendingPlanRef(Part):
    """The TerraformPlan that waits for approval."""

    name: Annotated[str, rule(minLength=1, maxLength=253)] = ""


class Settled(Part):
    """What the last pass that found nothing to do had seen."""

    fingerprint: Annotated[str, rule(minLength=1, maxLength=64)] = ""
    """Digest of the versions of everything the object depends on."""
    until: Time | None = None
    """When something is due by schedule. Absent: nothing before a change."""
    state_resources: Annotated[int, rule(minimum=0)] = 0
    """Managed resources in the Terraform state, for metrics."""
    state_bytes: Annotated[int, rule(minimum=0)] = 0
    """Compressed size of the Terraform state, for metrics."""
    inputs_bytes: Annotated[int, rule(minimum=0)] = 0
    """Size of the rendered inputs, for metrics."""


class Answer(Part):
    """What the pass found that was asked for with the annotation captf.io/reconcile-requested."""

    request: Annotated[str, rule(minLength=1, maxLength=64)] = ""
    """The annotation's value, cut to 64 bytes."""
    until: Time | None = None
    """When something is due that the pass had to wait for. Absent: a Job ran, or nothing is due."""


class CommonStatus(Part):
    """What every object with runs reports."""

    conditions: Conditions = msgspec.field(default_factory=list)
    initialization: Initialization | None = None
    observed_generation: Annotated[int, rule(minimum=1)] = 0
    active_job: ActiveJob | None = None
    last_run: LastRun | None = None
    last_drift_check: Time | None = None
    last_refresh: Time | None = None
    pending_refreshes: Annotated[int, rule(minimum=1)] = 0
    """Refreshes in a row that found the infrastructure still coming up."""
    observed_state_serial: Annotated[int, rule(minimum=1)] = 0
    """Serial of the Terraform state that was read last."""
    last_restored_serial: Annotated[int, rule(minimum=1)] = 0
    """Serial of the backup that was restored last, successfully or not."""
    state_secret_suffix: Annotated[str, rule(minLength=1, maxLength=63)] = ""
    """Part of the name of the Secret with the Terraform state."""
    source: SourceStatus | None = None
    settled: Settled | None = None
    answer: Answer | None = None
    state_backups: Annotated[list[StateBackup], rule(minItems=1, maxItems=16)] = msgspec.field(
        default_factory=list
    )
