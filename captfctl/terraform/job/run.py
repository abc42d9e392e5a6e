"""A decided run: everything that makes one Job what it is (runs.md: The Job)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from captfctl.model import names
from captfctl.model.kinds import KINDS
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.terraform import IdentityKind, JobPolicy
from captfctl.runs.run import Run
from captfctl.terraform.job.policy import deadline_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreSource:
    """The backup that a restore pushes: its Secrets in chunk order.

    `backup` is the name of the backup set, `resources` how many managed ones it should show.
    """

    serial: int
    backup: str
    secrets: tuple[str, ...]
    resources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What one Job is to do.

    `inputs_hash` and `tick` are part of the name (reconcile.md: What each operation renders); a
    restore's hash is its backup's. `files` are the rendered inputs by file name.
    `credentials_secret` is the mirror or the namespace's own Secret. `fallback_images` are tried in
    order when `image` cannot be pulled. `allow_deletes`, `expect_plan`, `plan` come from the
    decision (decision.md: What the decision reads). `force_unlock` is a stale lock that the runner
    removes, `lock_to_remove` one that the start removes because there is no state. `unsaved` are
    the Secrets with a state that the run stores first (state.md: A state that a run could not
    store). `approval_hash` is set for a pool's apply that is guarded. `state_lock_version` is
    as the pass read it; empty: the start reads it. `generation` is the object's.
    `exports_hash` is that of the exports that such an apply renders. `extra_annotations` are a
    kind's own on its Jobs. `first_apply`: before this apply there was neither a state nor a record.
    `unguarded`: a retry of that one, which may replace what it left.
    """

    owner: Owner
    op: Op
    attempt: int
    inputs_hash: str
    image: str
    files: Mapping[str, bytes] = field(repr=False)
    credentials_secret: str
    tick: str = ""
    image_pull_policy: str = ""
    fallback_images: tuple[str, ...] = ()
    policy: JobPolicy = field(default_factory=JobPolicy)
    identity: str = ""
    identity_kind: IdentityKind | None = None
    force_unlock: str = ""
    lock_to_remove: str = ""
    restore: RestoreSource | None = None
    unsaved: tuple[str, ...] = ()
    plan: str = ""
    expect_plan: str = ""
    allow_deletes: str = ""
    approval_hash: str = ""
    exports_hash: str = ""
    drift_remediation: bool = False
    after_failed_apply: bool = False
    after_interrupted_apply: str = ""
    first_apply: bool = False
    unguarded: bool = False
    state_lock_version: str = ""
    generation: int = 0
    extra_annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The Job's name: equal runs have equal names, so creating twice finds the first."""
        hash6 = names.run_hash(self.inputs_hash, self.op, self.attempt, self.tick)
        return names.job_name(self.owner.kind, self.owner.name, self.op, self.attempt, hash6)

    @property
    def run(self) -> Run:
        """The run as the engine sees it."""
        return Run(
            subject=self.owner,
            operation=self.op.value,
            name=self.name,
            deadline_seconds=deadline_seconds(self.policy),
            background=self.op.background,
        )

    @property
    def guarded(self) -> bool:
        """Whether the runner stops at a plan that deletes or replaces
        (runs.md: Volumes of the Job).

        A machine is never changed in place, so its apply needs no guard.
        """
        if self.op is not Op.APPLY or self.unguarded:
            return False
        return KINDS[self.owner.kind].leads or bool(self.approval_hash)

    @property
    def fingerprinted(self) -> bool:
        """Whether the plan of this run is hashed with the plan key."""
        planned = self.op is Op.APPLY and bool(self.expect_plan)
        return self.op is Op.PLAN or self.guarded or planned
