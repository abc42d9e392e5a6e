"""One pass of one object: what it read, what it learned, and what it will write
(reconcile.md: Writes of a pass)."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from captfctl.cluster.door import find
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.decide import Nanoseconds
from captfctl.model import keys
from captfctl.model.conditions import Conditions, ConditionValue, Type
from captfctl.model.core import Job
from captfctl.model.events import Note
from captfctl.model.kinds import CLUSTER
from captfctl.model.meta import Condition
from captfctl.model.resources import CLUSTERS, TERRAFORM_CLUSTERS
from captfctl.model.status import Initialization
from captfctl.model.terraform import JobPolicy, TerraformCluster
from captfctl.reconcile import settled
from captfctl.reconcile.env import Env
from captfctl.reconcile.identity import Identity
from captfctl.reconcile.owners import KIND, OwnerLookup, owner_of
from captfctl.reconcile.patch import document, merge_patch
from captfctl.terraform.books.bookkeeping import Bookkeeping
from captfctl.terraform.contract.effective import ClusterConfig, Flags, cluster_config
from captfctl.terraform.contract.values import ClusterInputs
from captfctl.terraform.contract.variables import UserVariables
from captfctl.terraform.state.lock import StateLock
from captfctl.terraform.state.reader import State, Unreadable
from captfctl.terraform.state.records import Records

log = logging.getLogger(__name__)

Change = Callable[[TerraformCluster], None]


def _block_move(obj: TerraformCluster) -> None:
    obj.metadata.annotations.setdefault(keys.BLOCK_MOVE, keys.TRUE)


def _allow_move(obj: TerraformCluster) -> None:
    obj.metadata.annotations.pop(keys.BLOCK_MOVE, None)


def _unchanged(obj: TerraformCluster) -> None:
    """For a start that has nothing to note on the object."""


def _unlist_job(obj: TerraformCluster) -> None:
    obj.status.active_job = None


class DecideAgain(Exception):
    """The pass cannot go on from what it read: end it without an error and without marking Jobs as
    read, and look again in 5 s (reconcile.md: Order of a pass)."""


@dataclass(frozen=True, slots=True)
class StateView:
    """The state as this pass found it. `held`: no Job may run except a requested restore."""

    state: State | None
    held: bool = False

    @property
    def inputs_hash(self) -> str:
        """The hash recorded on the state; empty when there is none."""
        return self.state.inputs_hash if self.state else ""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the object would be applied with now, or the gate that keeps it from being known."""

    gate: ConditionValue | None = None
    values: ClusterInputs | None = None
    variables: UserVariables | None = None
    hash: str = ""


class Pass:
    """The object as this pass changes it (`obj`), beside the object as the server has it.

    Everything that is set on `obj` is written by `persist` at the end of the pass; what must be on
    the server earlier goes through `write_now`. Both write only what changed, and only onto the
    version that was read: a pass that worked on an outdated object writes nothing.
    """

    kind = KIND

    def __init__(
        self, env: Env, obj: TerraformCluster, lookup: OwnerLookup, observed: bytes | None
    ) -> None:
        self.env = env
        self.observed = observed  # see `settled.observe`
        self.idle: Nanoseconds | None = None  # for how long nothing is due; None: not settled
        self.now = env.clock.now()
        self.obj = obj
        self.stored = TERRAFORM_CLUSTERS.copy(obj)
        self.lookup = lookup
        self.paused = False
        self.records = Records()
        self.jobs: Sequence[Job] = ()  # as cached before anything was read
        self.lock: StateLock | None = None  # where it could be read first
        self.state_read: State | Unreadable | None = None  # where it could be read with the records
        self.books: Bookkeeping | None = None
        self.state: StateView | None = None  # None: not read in this pass
        self.inputs = Inputs()
        self.running_apply = ""
        self.inputs_bytes = 0
        self.awaiting_approval: str | None = None  # None: nothing was decided in this pass
        self.let_go = False
        self.later: list[Note] = []  # events that are true only once the pass is written
        self.credentials_error: Exception | None = None
        self.before: list[Condition] = list(obj.status.conditions)
        self.conditions = Conditions(obj.status.conditions, self.now, obj.metadata.generation)
        self.owner = owner_of(obj, lookup)

    @property
    def deleting(self) -> bool:
        """Whether the object's deletion was requested."""
        return self.obj.deleting

    @property
    def provisioned(self) -> bool:
        """Whether the infrastructure was there once."""
        latch = self.obj.status.initialization
        return latch is not None and latch.provisioned

    def latch_provisioned(self) -> None:
        """The infrastructure is there. Never taken back."""
        self.obj.status.initialization = Initialization(provisioned=True)

    @property
    def policy(self) -> JobPolicy:
        """The Job policy that applies to the object."""
        return self.config.jobs

    @cached_property
    def config(self) -> ClusterConfig:
        """The effective configuration: a cluster inherits nothing
        (api.md: Effective configuration)."""
        settings = self.env.settings
        flags = Flags(
            drift_interval=settings.drift_default_interval,
            max_active_jobs=settings.cluster_max_active_jobs,
        )
        return cluster_config(self.obj, flags)

    @property
    def kept(self) -> Bookkeeping:
        """The bookkeeping of this pass, which every step after it relies on."""
        assert self.books is not None
        return self.books

    @property
    def identity(self) -> Identity:
        """The credentials that the object names."""
        return Identity.of(self.obj.spec.identity_ref)

    def record(self, *notes: Note) -> None:
        """Post events about the object."""
        for note in notes:
            self.env.recorder.record(self.obj, note)

    def set(self, kind: Type, value: ConditionValue) -> None:
        """Set a condition of the object."""
        self.conditions.set(kind, value.status, value.reason, value.message)

    def has_finalizer(self) -> bool:
        """Whether our finalizer holds the object."""
        return CLUSTER.finalizer in self.obj.metadata.finalizers

    def drop_finalizer(self) -> None:
        """Let the object go; takes effect with the next write of its metadata."""
        self.let_go = True
        finalizers = self.obj.metadata.finalizers
        self.obj.metadata.finalizers = [f for f in finalizers if f != CLUSTER.finalizer]

    def write_now(self, change: Change, *, status: bool = False) -> None:
        """Make one change on the server now. Raises `Conflict` on an outdated object."""
        target = TERRAFORM_CLUSTERS.copy(self.stored)
        change(target)
        patch = merge_patch(document(self.stored), document(target))
        if patch:
            self._patch(patch, "status" if status else "")
        change(self.obj)

    def persist(self) -> None:
        """The one deferred patch: what differs from the server, nothing when nothing does.

        Metadata and spec go first, so that a reader of the status finds the endpoint; a
        finalizer goes last, because nothing can be written after it.
        """
        self.obj.status.conditions = self.conditions.list()
        self._settle()
        if self.obj == self.stored:
            return
        patch = merge_patch(document(self.stored), document(self.obj))
        status = patch.pop("status", None)
        letting_go = self.stored.deleting and not self.has_finalizer()
        try:
            if patch and not letting_go:
                self._patch(patch)
                status = self._status_of_own_spec(status)
            if status:
                self._patch({"status": status}, "status")
            if patch and letting_go:
                self._patch(patch)
        except NotFound:
            if not letting_go:
                raise

    def _status_of_own_spec(self, status: object) -> object:
        """The status patch after the spec was written. Where that made a new generation, the status
        is about that one: nobody else can have changed the version that was read."""
        before, now = self.obj.metadata.generation, self.stored.metadata.generation
        if before == now:
            return status
        self.obj.metadata.generation = now
        if self.obj.status.observed_generation == before:
            self.obj.status.observed_generation = now
        self.conditions.move_generation(now)
        self.obj.status.conditions = self.conditions.list()
        return merge_patch(document(self.stored), document(self.obj)).get("status")

    def _settle(self) -> None:
        state = self.state.state if self.state else None
        if self.observed is None or self.idle is None or state is None:
            return
        sizes = settled.Sizes(state.resources, state.bytes, self.inputs_bytes)
        self.obj.status.settled = settled.settle(
            self.obj, self.observed, self.idle, self.now, sizes
        )

    def confirm(self) -> None:
        """Read live that the object is still the one this pass read. Raises `Conflict`."""
        meta = self.stored.metadata
        partial = TERRAFORM_CLUSTERS.metadata_only()
        live = self.env.door.get(partial, meta.name, meta.namespace).metadata
        if (live.uid, live.resource_version) != (meta.uid, meta.resource_version):
            raise Conflict(
                f"{self.kind} {meta.namespace}/{meta.name} changed since this pass read it"
            )

    def hold_moves(self, note: Change = _unchanged) -> str:
        """Keep the object from being moved while something may be running; on the server now.

        `note` is written with it. This also confirms that the object is the one this pass read.
        Tells why no Job may start after all, as seen live; empty when one may.
        """
        if keys.BLOCK_MOVE in self.stored.metadata.annotations:
            self.confirm()

        def change(obj: TerraformCluster) -> None:
            _block_move(obj)
            note(obj)

        self.write_now(change)
        name = self.owner.cluster
        cluster = find(self.env.door, CLUSTERS, self.owner.namespace, name) if name else None
        if cluster is not None and cluster.spec.paused:
            self.write_now(_allow_move)
            return "paused meanwhile"
        return ""

    def unlist_job(self) -> None:
        """Take the running Job off `status.activeJob` on the server now."""
        if self.stored.status.active_job is None:
            self.confirm()
        self.write_now(_unlist_job, status=True)

    def _patch(self, patch: dict[str, object], subresource: str = "") -> None:
        meta = self.stored.metadata
        written = self.env.door.patch(
            TERRAFORM_CLUSTERS,
            meta.name,
            meta.namespace,
            patch,
            resource_version=meta.resource_version,
            subresource=subresource,
        )
        self.stored = written
        self.obj.metadata.resource_version = written.metadata.resource_version
        self.env.cache.wrote(TERRAFORM_CLUSTERS.copy(written))
