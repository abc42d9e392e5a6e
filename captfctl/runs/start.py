"""Starting a Job, in an order that survives a crash after any step (11 §6)."""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from captfctl.cluster.reads import SharedReads, Window
from captfctl.model import keys, names
from captfctl.model.core import Job, Lease
from captfctl.model.events import EventReason, Note
from captfctl.model.meta import ObjectMeta, whole_seconds
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.resources import CLUSTERS, JOBS, LEASES, SECRETS
from captfctl.model.status import ActiveJob
from captfctl.runs.leases import LeaseClaim, Leases
from captfctl.runs.patience import Patience
from captfctl.runs.prune import delete_job
from captfctl.terraform.books.results import is_finished
from captfctl.terraform.job.build import RunnerSettings, build_job, build_run_secret
from captfctl.terraform.job.policy import deadline_seconds
from captfctl.terraform.job.run import RunSpec
from captfctl.terraform.state.lock import StateLock, lock_version
from captfctl.terraform.state.plan_key import PLAN_KEYS, ensure_plan_key
from captfctl.terraform.state.records import RunInputs, write_attempt

log = logging.getLogger(__name__)

# What a server answers when it has refused the object for good: the Job does not exist.
_REJECTED = (BadRequest, Unauthorized, Forbidden, NotFound, Invalid, TooLarge)


@dataclass(frozen=True, slots=True)
class Started:
    """The Job runs. `adopted`: an earlier, interrupted start had created it."""

    job: Job
    active: ActiveJob
    adopted: bool
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Deferred:
    """Not now, and no failure: look again in 5 s. `why` is for the log.

    `block_move` tells whether that annotation is on the object on the server.
    """

    why: str
    block_move: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """The Job to go on with."""

    job: Job
    adopted: bool


def claim_of(run: RunSpec) -> LeaseClaim:
    """What `Leases.acquire` is asked for before the run is started."""
    return LeaseClaim(run.owner, run.op, run.name, deadline_seconds(run.policy))


class Starter:
    """Starts Jobs. The leases were taken before, for `claim_of` the run.

    `random_bytes(n)` makes the plan key: it must be unpredictable. `patience`: for how many seconds
    things are begun again, once a Job may exist, while the server is away.
    """

    def __init__(
        self,
        door: Door,
        leases: Leases,
        clock: Clock,
        settings: RunnerSettings,
        random_bytes: Callable[[int], bytes],
        shared: SharedReads | None = None,
        *,
        patience: float = 0.0,
    ) -> None:
        self._door = door
        self._leases = leases
        self._clock = clock
        self._settings = settings
        self._random_bytes = random_bytes
        self._shared = shared or SharedReads()
        self._patience = patience

    def start(
        self,
        run: RunSpec,
        *,
        explanation: str,
        lock: StateLock | None = None,
    ) -> Started | Deferred:
        """Start the run, or adopt it.

        `explanation` ends the note of `JobCreated`. Raises the door's errors; whether the leases
        were given back then follows 11 §6.
        """
        try:
            job = self._prepare(run)
        except Exception:
            self.give_back(run)
            raise
        if isinstance(job, Deferred):
            return job
        patience = Patience(self._clock, self._patience)
        found = self._create(run, job, patience)
        if isinstance(found, Deferred):
            return found
        patience.insist(lambda: self._provide(run, found.job))
        return Started(
            job=found.job,
            active=self._active(run),
            adopted=found.adopted,
            notes=self._notes(run, explanation, lock),
        )

    def _prepare(self, run: RunSpec) -> Job | Deferred:
        """Steps 1 to 7: nothing exists yet that would have to be taken back by hand."""
        live = self._block_move(run.owner)
        with self._shared.window(self._door) as reads:
            _read_ahead(reads, run)
            if self._paused(reads, run.owner, live):
                self._unblock_move(run.owner)
                self.give_back(run)
                return Deferred("paused meanwhile", block_move=False)
            if run.op is Op.APPLY:
                run = replace(run, state_lock_version=lock_version(_lock(reads, run.owner)))
            if run.fingerprinted:
                ensure_plan_key(reads, run.owner, self._random_bytes)
        job = build_job(run, self._settings)
        if not self._leases.freshen(claim_of(run)):
            return Deferred("the run lease is not ours any more", block_move=True)
        return job

    def _block_move(self, owner: Owner) -> ObjectMeta:
        """Hold a move before there is anything to hold it for; the metadata as it is live."""
        live = self._door.get(owner.resource, owner.name, owner.namespace).metadata
        return live if keys.BLOCK_MOVE in live.annotations else self._annotate(owner, keys.TRUE)

    def _unblock_move(self, owner: Owner) -> None:
        self._annotate(owner, None)

    def _annotate(self, owner: Owner, value: str | None) -> ObjectMeta:
        patch = {"metadata": {"annotations": {keys.BLOCK_MOVE: value}}}
        written = self._door.patch(owner.resource, owner.name, owner.namespace, patch)
        return written.metadata

    @staticmethod
    def _paused(reads: Window, owner: Owner, live: ObjectMeta) -> bool:
        """Live: a pause that the cache has not seen yet must hold (10 §22.59)."""
        if keys.PAUSED in live.annotations:
            return True
        if not owner.cluster:
            return False
        cluster = reads.find(CLUSTERS, owner.namespace, owner.cluster)
        return cluster is not None and cluster.spec.paused

    def _create(self, run: RunSpec, job: Job, patience: Patience) -> _Found | Deferred:
        try:
            created = self._door.create(JOBS, job, run.owner.namespace)
        except AlreadyExists:
            return self._adopt(run, patience.insist(lambda: self._read_job(run)))
        except Unavailable as error:
            if not error.outcome_unknown:
                raise
            patience.note(error)
            # Where only the answer is lost, the Job waits for its Secret already.
            existing = patience.insist(lambda: self._read_job(run))
            if existing is None:
                raise
            return self._adopt(run, existing)
        except _REJECTED:
            self.give_back(run)
            raise
        return _Found(created, adopted=False)

    def _adopt(self, run: RunSpec, job: Job | None) -> _Found | Deferred:
        """What to do about a Job that has the name already (11 §6)."""
        if job is None:
            return Deferred("the Job of that name went away meanwhile", block_move=True)
        ours, finished = run.owner.controls(job.metadata), is_finished(job)
        if ours and not finished:
            return _Found(job, adopted=True)
        if ours:
            return Deferred("the Job finished already: the cache is behind", block_move=True)
        if finished:
            delete_job(self._door, job)
            return Deferred("removed a finished Job of an earlier object", block_move=True)
        return Deferred("a Job of an earlier object still runs", block_move=True)

    def _read_job(self, run: RunSpec) -> Job | None:
        try:
            return self._door.get(JOBS, run.name, run.owner.namespace)
        except NotFound:
            return None

    def give_back(self, run: RunSpec) -> None:
        """The leases of a start that came to nothing; kept when its Job does exist."""
        try:
            exists = self._read_job(run) is not None
        except ApiError as error:
            log.warning("leases of %s are kept, it cannot be read: %s", run.name, error)
            return
        if not exists:
            self._leases.release(run.owner, run.name)

    def _provide(self, run: RunSpec, job: Job) -> None:
        """Steps 9 and 10. Every write may have taken place already. The record only now: a refused
        start must not replace the one of the apply that ran last. The Secret needs the Job's UID;
        the pod waits for it."""
        if run.op is Op.APPLY:
            inputs = RunInputs(
                job=run.name,
                files=run.files,
                inputs_hash=run.inputs_hash,
                image=run.image,
                identity=run.identity,
                identity_kind=run.identity_kind,
            )
            write_attempt(self._door, run.owner, inputs)
        self._create_secret(run, job)
        self._retract_late_secret(run)

    def _create_secret(self, run: RunSpec, job: Job) -> None:
        secret = build_run_secret(run, job)
        try:
            self._door.create(SECRETS, secret, run.owner.namespace)
        except AlreadyExists:
            if self._has_own_secret(job):
                return
            self._door.create(SECRETS, secret, run.owner.namespace)

    def _retract_late_secret(self, run: RunSpec) -> None:
        """A start that was held up may find that another manager adopted the Job meanwhile, saw it
        finish and deleted its Secret: one made after that must neither be counted nor stay."""
        job = self._read_job(run)
        if job is None or not is_finished(job):
            return
        with contextlib.suppress(NotFound):
            self._door.delete(SECRETS, names.run_secret(run.name), run.owner.namespace)

    def _has_own_secret(self, job: Job) -> bool:
        """Whether the Secret is this Job's: then its content is right. Another's is deleted."""
        name, namespace = names.run_secret(job.metadata.name), job.metadata.namespace
        try:
            found = self._door.get(SECRETS.metadata_only(), name, namespace)
            if any(ref.uid == job.metadata.uid for ref in found.metadata.owner_references):
                return True
            self._door.delete(SECRETS, name, namespace, uid=found.metadata.uid)
        except NotFound:
            return False
        return False

    def _active(self, run: RunSpec) -> ActiveJob:
        return ActiveJob(
            name=run.name,
            operation=run.op,
            attempt=run.attempt,
            start_time=whole_seconds(self._clock.now()),
        )

    def _notes(self, run: RunSpec, explanation: str, lock: StateLock | None) -> tuple[Note, ...]:
        text = f"{run.op} attempt {run.attempt} with image {run.image}: {explanation}"
        notes = [EventReason.JOB_CREATED.says(text, job=run.name)]
        if run.force_unlock:
            holder = lock.who if lock and lock.who else "unknown"
            text = f"the run removes the state lock {run.force_unlock} of {holder}, which is gone"
            notes.append(EventReason.FORCE_UNLOCKED.says(text, job=run.name))
        return tuple(notes)


def _lock(reads: Window, owner: Owner) -> Lease | None:
    return reads.find(LEASES, owner.namespace, names.state_lock(owner.suffix))


def _read_ahead(reads: Window, run: RunSpec) -> None:
    """Begin what `Starter._prepare` asks for."""
    owner = run.owner
    if owner.cluster:
        reads.ahead(CLUSTERS, owner.namespace, owner.cluster)
    if run.op is Op.APPLY:
        reads.ahead(LEASES, owner.namespace, names.state_lock(owner.suffix))
    if run.fingerprinted:
        reads.ahead(PLAN_KEYS, owner.namespace, names.plan_key(owner.kind, owner.name))
