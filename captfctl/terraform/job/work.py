"""What a Terraform run needs besides its Job: plan key, attempt record, per-run Secret
(runs.md: Starting a Job)."""

import contextlib
from collections.abc import Callable
from dataclasses import replace

from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import AlreadyExists, Conflict, NotFound
from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.meta import PartialObject
from captfctl.model.ops import Op
from captfctl.model.resources import SECRETS
from captfctl.terraform.job.build import RunnerSettings, build_job, build_run_secret
from captfctl.terraform.job.run import RunSpec
from captfctl.terraform.state.backup_store import make_room
from captfctl.terraform.state.lock import find_lock, lock_version, remove_lock
from captfctl.terraform.state.plan_key import ensure_plan_key
from captfctl.terraform.state.records import RunInputs, write_attempt
from captfctl.terraform.state.unsaved import find_kept


class TerraformWork:
    """The Terraform side of one start (`captfctl.runs.start.Work`).

    `random_bytes(n)` makes the plan key: it must be unpredictable. `seen` gives a managed Secret's
    metadata as cached; without it everything is read live.
    """

    def __init__(
        self,
        door: Door,
        run: RunSpec,
        settings: RunnerSettings,
        random_bytes: Callable[[int], bytes],
        seen: Callable[[str, str], PartialObject | None] | None = None,
    ) -> None:
        self._door = door
        self._run = run
        self._settings = settings
        self._random_bytes = random_bytes
        self._seen = seen

    def build(self) -> Job:
        run = self._run
        self._confirm_unsaved()
        if run.op is Op.RESTORE:
            make_room(self._door, run.owner)
        if run.lock_to_remove:
            remove_lock(self._door, run.owner, run.lock_to_remove)
        if run.op is Op.APPLY and (run.lock_to_remove or not run.state_lock_version):
            lock = find_lock(self._door, run.owner)
            run = replace(run, state_lock_version=lock_version(lock))
        if run.fingerprinted and not self._has_plan_key():
            ensure_plan_key(self._door, run.owner, self._random_bytes)
        return build_job(run, self._settings)

    def _has_plan_key(self) -> bool:
        """Nobody but the end of its owner takes a plan key away, so a cache that shows it is
        right."""
        if self._seen is None:
            return False
        owner = self._run.owner
        seen = self._seen(owner.namespace, names.plan_key(owner.kind, owner.name))
        return seen is not None and any(r.uid == owner.uid for r in seen.metadata.owner_references)

    def _confirm_unsaved(self) -> None:
        """A state that turned up since the pass looked must be stored first: an agent that was away
        may have found it on its node."""
        run = self._run
        kept = find_kept(self._door, run.owner)
        if kept is not None and kept.secrets != run.unsaved:
            raise Conflict(f"a state of Job {kept.job} that was not stored turned up meanwhile")

    def provide(self, job: Job) -> None:
        """The record only now: a refused start must not replace the one of the apply that ran
        last. The Secret needs the Job's UID; the pod waits for it."""
        run = self._run
        if run.op is Op.APPLY:
            inputs = RunInputs(
                job=run.name,
                files=run.files,
                inputs_hash=run.inputs_hash,
                image=run.image,
                identity=run.identity,
                identity_kind=run.identity_kind,
            )
            write_attempt(
                self._door,
                run.owner,
                inputs,
                first_apply=run.first_apply,
                lock_version=job.metadata.annotations.get(keys.STATE_LOCK_VERSION, ""),
                exports_hash=run.exports_hash,
            )
        self._create_secret(job)

    def withdraw(self) -> None:
        run = self._run
        with contextlib.suppress(NotFound):
            self._door.delete(SECRETS, names.run_secret(run.name), run.owner.namespace)

    def _create_secret(self, job: Job) -> None:
        secret = build_run_secret(self._run, job)
        try:
            self._door.create(SECRETS, secret, job.metadata.namespace)
        except AlreadyExists:
            if self._has_own_secret(job):
                return
            self._door.create(SECRETS, secret, job.metadata.namespace)

    def _has_own_secret(self, job: Job) -> bool:
        """Whether the Secret is this Job's: then its content is right. Another's is deleted."""
        name, namespace = names.run_secret(job.metadata.name), job.metadata.namespace
        found = find(self._door, SECRETS.metadata_only(), namespace, name)
        if found is None:
            return False
        if any(ref.uid == job.metadata.uid for ref in found.metadata.owner_references):
            return True
        with contextlib.suppress(NotFound):
            self._door.delete(SECRETS, name, namespace, uid=found.metadata.uid)
        return False


def has_run_secret(door: Door, job: Job) -> bool:
    """Whether the Secret that the Job's pod mounts exists, read live."""
    name = names.run_secret(job.metadata.name)
    return find(door, SECRETS.metadata_only(), job.metadata.namespace, name) is not None
