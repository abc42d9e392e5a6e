"""From a decided run to its Job and per-run Secret (11 §3–§5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from captfctl.jobs import policy as policies
from captfctl.model import names
from captfctl.model.core import Job, Secret
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.terraform import IdentityKind, JobPolicy

EMPTY_PLAN_HASH = "p2:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """The manager's own settings that reach every Job. `image` holds the runner."""

    image: str
    events: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreSource:
    """The backup that a restore pushes: its Secrets in chunk order."""

    serial: int
    backup: str
    secrets: tuple[str, ...]
    resources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Everything that decides what one Job is.

    `inputs_hash` and `tick` are those of 10 §11.1 and part of the name. `files` are the rendered
    inputs by file name. `credentials_secret` is the mirror or the namespace's own Secret.
    `fallback_images` are tried in order when `image` cannot be pulled. `guarded_deletes` asks the
    runner to stop at a plan that deletes; `guard_hash` is what the guard compares approvals with.
    """

    owner: Owner
    op: Op
    attempt: int
    inputs_hash: str
    image: str
    files: Mapping[str, bytes]
    credentials_secret: str
    tick: str = ""
    image_pull_policy: str = ""
    fallback_images: tuple[str, ...] = ()
    policy: JobPolicy = policies.UNSET
    identity: str = ""
    identity_kind: IdentityKind | None = None
    force_unlock: str = ""
    restore: RestoreSource | None = None
    # applies only
    plan: str = ""
    expect_plan: str = ""
    allow_deletes: str = ""
    approval_hash: str = ""
    drift_remediation: bool = False
    after_failed_apply: bool = False
    after_interrupted_apply: str = ""
    state_lock_version: str = ""
    extra_annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The Job's name: equal runs have equal names, so creating twice finds the first."""
        hash6 = names.run_hash(self.inputs_hash, self.op, self.attempt, self.tick)
        return names.job_name(self.owner.kind, self.owner.name, self.op, self.attempt, hash6)

    @property
    def guarded(self) -> bool:
        """Whether the runner stops at a plan that deletes or replaces (11 §4.1)."""
        if self.op is not Op.APPLY:
            return False
        return self.owner.kind == "TerraformCluster" or bool(self.approval_hash)

    @property
    def fingerprinted(self) -> bool:
        """Whether the plan of this run is hashed with the plan key (11 §4.1)."""
        return self.op is Op.PLAN or self.guarded or bool(self.expect_plan)


def build_job(run: RunSpec, settings: RunnerSettings) -> Job:
    """The Job of a run. Raises `ValueError` when a label cannot be given to the backend."""
    raise NotImplementedError


def build_run_secret(run: RunSpec, job: Job) -> Secret:
    """The Secret that the Job's pod mounts (11 §5). `job` is the created one: it has a UID."""
    raise NotImplementedError


def hcl_map(entries: Mapping[str, str]) -> str:
    """An HCL object as the backend reads it from the command line (40 §2.3)."""
    raise NotImplementedError
