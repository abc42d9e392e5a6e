"""One pass of one object: the object as the pass changes it, and how that is written
(reconcile.md: Writes of a pass)."""

from collections.abc import Callable
from functools import cached_property

from captfctl.cluster.door import find
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.model import keys
from captfctl.model.conditions import Conditions, ConditionValue, Type
from captfctl.model.conditions import find as find_condition
from captfctl.model.events import Note
from captfctl.model.meta import Condition
from captfctl.model.owner import Owner
from captfctl.model.resources import CLUSTERS
from captfctl.model.status import Initialization
from captfctl.model.terraform import JobPolicy, TerraformObject
from captfctl.reconcile.env import Env
from captfctl.reconcile.kinds import KindRules, effective
from captfctl.reconcile.patch import document, merge_patch
from captfctl.terraform.contract.effective import Config

Change = Callable[[TerraformObject], None]


def _block_move(obj: TerraformObject) -> None:
    obj.metadata.annotations.setdefault(keys.BLOCK_MOVE, keys.TRUE)


def _allow_move(obj: TerraformObject) -> None:
    obj.metadata.annotations.pop(keys.BLOCK_MOVE, None)


def _unchanged(obj: TerraformObject) -> None:
    """For a start that has nothing to note on the object."""


def _unlist_job(obj: TerraformObject) -> None:
    obj.status.active_job = None


class DecideAgain(Exception):
    """The pass cannot go on from what it read: end it without an error and without marking Jobs as
    read, and look again in 5 s (reconcile.md: Order of a pass)."""


class Pass:
    """The object as this pass changes it (`obj`), beside the object as the server has it.

    Everything that is set on `obj` is written by `persist` at the end of the pass; what must be on
    the server earlier goes through `write_now`. Both write only what changed, and only onto the
    version that was read: a pass that worked on an outdated object writes nothing.
    """

    def __init__(self, env: Env, rules: KindRules, owner: Owner) -> None:
        obj = rules.obj
        self.env = env
        self.now = env.clock.now()
        self.rules = rules
        self.obj = obj
        self.stored: TerraformObject = rules.resource.copy(obj)
        self.owner = owner
        self.paused = False
        self.let_go = False
        self.later: list[Note] = []  # events that are true only once the pass is written
        self.before: list[Condition] = list(obj.status.conditions)
        self.conditions = Conditions(obj.status.conditions, self.now, obj.metadata.generation)

    @property
    def kind(self) -> str:
        """The name of the object's kind."""
        return self.rules.kind.name

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
    def config(self) -> Config:
        """The effective configuration (api.md: Effective configuration)."""
        return effective(self.rules, self.env.settings)

    def record(self, *notes: Note) -> None:
        """Post events about the object."""
        for note in notes:
            self.env.recorder.record(self.obj, note)

    def set(self, kind: Type, value: ConditionValue) -> None:
        """Set a condition of the object."""
        self.conditions.set(kind, value.status, value.reason, value.message)

    def condition_before(self, kind: Type) -> Condition | None:
        """The condition as the pass found it."""
        return find_condition(self.before, kind)

    def has_finalizer(self) -> bool:
        """Whether our finalizer holds the object."""
        return self.rules.kind.finalizer in self.obj.metadata.finalizers

    def drop_finalizer(self) -> None:
        """Let the object go; takes effect with the next write of its metadata."""
        self.let_go = True
        meta, ours = self.obj.metadata, self.rules.kind.finalizer
        meta.finalizers = [finalizer for finalizer in meta.finalizers if finalizer != ours]

    def write_now(self, change: Change, *, status: bool = False) -> None:
        """Make one change on the server now. Raises `Conflict` on an outdated object."""
        target = self.rules.resource.copy(self.stored)
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

    def confirm(self) -> None:
        """Read live that the object is still the one this pass read. Raises `Conflict`."""
        meta = self.stored.metadata
        partial = self.rules.resource.metadata_only()
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

        def change(obj: TerraformObject) -> None:
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
            self.rules.resource,
            meta.name,
            meta.namespace,
            patch,
            resource_version=meta.resource_version,
            subresource=subresource,
        )
        self.stored = written
        self.obj.metadata.resource_version = written.metadata.resource_version
        self.env.cache.wrote(self.rules.resource.copy(written))
