"""Runs that end as the draw says, and the infrastructure that they really leave behind."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.kinds import CLUSTER, MACHINE, MACHINE_POOL
from captfctl.model.resources import JOBS, LEASES, PODS, SECRETS
from captfctl.reconcile.kept_pods import kept_pods, release_pods
from runner import wire
from tests.simulation.planning import Planning, values_of
from tests.support.fake_runner import OUTPUTS, FakeRunner, suffix_of
from tests.support.machine_world import MACHINE_OUTPUTS, POOL_OUTPUTS

DEADLINE = 3600
_BEFORE_THE_PLAN = ("fail early", "vanished early", "killed without state")
MISSING_IMAGE = "registry.example.com/cluster-module:missing"


def outputs_of(job: Job, made_for: str) -> Mapping[str, Any]:
    """What the module of the Job's owner reports."""
    kind = job.metadata.labels[keys.OWNER_KIND]
    if kind == MACHINE.name:
        return MACHINE_OUTPUTS
    if kind == MACHINE_POOL.name:
        return POOL_OUTPUTS
    return {**OUTPUTS, "exports": {"region": made_for}}


def inputs_hash_of(job: Job) -> str:
    """The hash of what the Job applies, or of what the backup it restores was made of."""
    return job.metadata.annotations.get(keys.INPUTS_HASH, "")


@dataclass
class Infrastructure:
    """What exists in the world outside, by state suffix: the region it was made for.

    `twice` are the applies that created what existed already: their state did not tell of it.
    `inputs` is the hash of what was applied last, "" after half of an apply; `unlike` is what a
    restored state tells otherwise, which only a drift check sees.
    """

    exists: dict[str, str] = field(default_factory=dict)
    destroyed: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    unlike: set[str] = field(default_factory=set)

    def applied(self, suffix: str, inputs: str) -> None:
        """The state tells of what exists, made of these inputs."""
        self.inputs[suffix] = inputs
        self.unlike.discard(suffix)

    def restored(self, suffix: str, inputs: str) -> None:
        """The state tells of what was made of these inputs."""
        if self.inputs.get(suffix, "") == inputs:
            self.unlike.discard(suffix)
        else:
            self.unlike.add(suffix)


@dataclass
class _Run:
    outcome: str
    started: float
    region: str
    locked: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)


class Runs:
    """Moves every unfinished Job on by one step per call of `progress`."""

    def __init__(self, door: Door, clock: Clock, rng: random.Random) -> None:
        self._door, self._clock, self._rng = door, clock, rng
        self._fake = FakeRunner(door, clock)
        self._runs: dict[str, _Run] = {}
        self.infrastructure = Infrastructure()
        self.planning = Planning(door, rng, self.infrastructure.exists)
        self.told: list[str] = []
        self.pushed: Callable[[str], None] = lambda _: None

    def progress(self, *, faults: bool) -> None:
        for job in self._door.list(JOBS).items:
            if not job.status.conditions:
                self._step(JOBS.copy(job), faults=faults)
        self._collect()

    def _step(self, job: Job, *, faults: bool) -> None:
        run = self._runs.get(job.metadata.uid)
        if run is None:
            self._start(job, faults=faults)
        elif run.outcome == "hang":
            if self._clock.monotonic() - run.started >= DEADLINE:
                self._end_by_deadline(job, run)
        elif not run.locked and self._takes_lock(job, run):
            self._lock(job, run)
        else:
            self._finish(job, run)

    def _start(self, job: Job, *, faults: bool) -> None:
        try:
            secret = self._door.get(
                SECRETS, names.run_secret(job.metadata.name), job.metadata.namespace
            )
        except NotFound:
            return  # the pod waits for its volume
        self._fake.forget_pod(job)
        if job.spec.template.spec.containers[0].image == MISSING_IMAGE:
            self._wait_for_image(job)
            return
        values = values_of(secret.data)
        outcome = self._draw(job) if faults else "ok"
        self._fake.start(job)
        made_for = values.get("region") or values.get("bootstrap_data", "")
        run = _Run(outcome, self._clock.monotonic(), made_for, values=values)
        self._runs[job.metadata.uid] = run
        self.told.append(f"run {job.metadata.name} starts, will end: {outcome}")

    def _wait_for_image(self, job: Job) -> None:
        self._fake.wait_for_image(job, "ImagePullBackOff", f"{MISSING_IMAGE}: not found")
        self._runs[job.metadata.uid] = _Run("hang", self._clock.monotonic(), "")
        self.told.append(f"run {job.metadata.name} waits for an image that does not exist")

    def _draw(self, job: Job) -> str:
        common = ["ok"] * 8 + ["fail early", "drained", "hang", "vanished early"]
        mutating = ["fail late", "killed", "killed without state", "garbled"]
        if job.metadata.labels[keys.OP] in ("apply", "destroy"):
            common += mutating
        return self._rng.choice(common)

    def _takes_lock(self, job: Job, run: _Run) -> bool:
        return run.outcome not in ("fail early", "vanished early")

    def _lock(self, job: Job, run: _Run) -> None:
        """A lock that somebody else holds, and that we were not told to remove, ends the run."""
        holder = self._lock_holder(job)
        (container,) = job.spec.template.spec.containers
        if holder and f"--force-unlock={holder}" not in container.args:
            self._fake.fail(job, "init")
            del self._runs[job.metadata.uid]
            return
        self._fake.lock(job)
        run.locked = True

    def _lock_holder(self, job: Job) -> str:
        try:
            lease = self._door.get(LEASES, names.state_lock(suffix_of(job)), job.metadata.namespace)
        except NotFound:
            return ""
        return lease.spec.holder_identity

    def _finish(self, job: Job, run: _Run) -> None:
        if self._stopped(job, run):
            return
        ends: dict[str, Callable[[Job, _Run], None]] = {
            "ok": self._ok,
            "fail early": lambda j, _: self._fake.fail(j, "init"),
            "fail late": self._fail_late,
            "drained": self._drained,
            "killed": self._killed,
            "killed without state": self._killed_without_state,
            "vanished early": lambda j, _: self._fake.end(j, ok=False, result=None, pod=False),
            "garbled": self._garbled,
        }
        ends[run.outcome](job, run)
        del self._runs[job.metadata.uid]

    def _stopped(self, job: Job, run: _Run) -> bool:
        """The runner itself ends it once it knows the plan."""
        if job.metadata.labels[keys.OP] != "apply" or run.outcome in _BEFORE_THE_PLAN:
            return False
        effect = self.planning.effect(job, run.values)
        kind = self.planning.stopped_by(job, effect)
        if not kind:
            return False
        plan = effect.result()
        if kind == wire.BLOCKED and self._rng.random() < 0.1:
            plan["hash"] = ""  # it could not read the key
        self._fake.lock(job, held=False)
        error = {"kind": kind, "step": None, "tail": kind}
        result = {"op": "apply", "steps": [], "error": error, "plan": plan}
        self._fake.end(job, ok=False, result=result)
        del self._runs[job.metadata.uid]
        self.told.append(f"run {job.metadata.name} is stopped: {kind}")
        return True

    def _change(self, job: Job, run: _Run) -> None:
        """The effect of the whole operation, on the world and in the state."""
        suffix, op = suffix_of(job), job.metadata.labels[keys.OP]
        world = self.infrastructure
        blind = suffix in world.exists and not self._fake.resources(job)
        if op == "apply" and blind:
            world.twice.append(job.metadata.name)
        if op == "destroy" and blind:
            self._fake.write_state(job, {}, resources=0)
            return  # what exists stays: the state does not tell of it
        if op == "destroy":
            world.exists.pop(suffix, None)
            world.destroyed.append(suffix)
            self._fake.write_state(job, {}, resources=0)
            return
        if op == "apply":
            effect = self.planning.effect(job, run.values)
            self.planning.carried_out(job, effect, whole=True)
            world.exists[suffix] = run.region
            world.applied(suffix, inputs_hash_of(job))
        if op == "restore":
            self._fake.push_backup(job)
            world.restored(suffix, inputs_hash_of(job))
            self.pushed(suffix)
        if op in ("plan", "restore"):
            return
        self._fake.write_state(job, outputs_of(job, world.exists.get(suffix, "")))

    def _half(self, job: Job, run: _Run) -> None:
        """Some of it happened, and Terraform had written that much."""
        if job.metadata.labels[keys.OP] == "apply":
            if suffix_of(job) in self.infrastructure.exists and not self._fake.resources(job):
                self.infrastructure.twice.append(job.metadata.name)
            self._half_applied(job, run)
            self._fake.write_state(job, {})

    def _half_applied(self, job: Job, run: _Run) -> None:
        """Where it worked once, something may be left that only a replacement mends."""
        suffix, exists = suffix_of(job), self.infrastructure.exists
        effect = self.planning.effect(job, run.values)
        self.infrastructure.applied(suffix, "")
        if suffix not in exists:
            exists[suffix] = "half"
        elif not effect.empty:
            self.planning.carried_out(job, effect, whole=False)
            tainted = suffix in self.planning.got_through and self._rng.random() < 0.5
            kind = job.metadata.labels[keys.OWNER_KIND]
            exists[suffix] = "tainted" if tainted and kind == CLUSTER.name else exists[suffix]

    def _ok(self, job: Job, run: _Run) -> None:
        op, result = job.metadata.labels[keys.OP], {}
        if op == "plan":
            result = {"plan": self.planning.effect(job, run.values).result()}
        suffix = suffix_of(job)
        drifted = self.planning.by_hand.get(suffix) or suffix in self.infrastructure.unlike
        if op == "drift" and drifted:
            result = {"drift": {"detected": True, "update": 1}}
        self._change(job, run)
        self._fake.lock(job, held=False)
        self._fake.end(job, ok=True, result={"op": op, **result})

    def _fail_late(self, job: Job, run: _Run) -> None:
        self._half(job, run)
        self._fake.lock(job, held=False)
        self._fake.fail(job, job.metadata.labels[keys.OP])

    def _drained(self, job: Job, run: _Run) -> None:
        self._half(job, run)
        self._fake.lock(job, held=False)
        op = job.metadata.labels[keys.OP]
        self._fake.fail(job, op if op in ("apply", "destroy") else "init", kind="interrupted")

    def _killed(self, job: Job, run: _Run) -> None:
        self._half(job, run)
        self._fake.end(job, ok=False, result=None, pod=self._rng.random() < 0.5)

    def _killed_without_state(self, job: Job, run: _Run) -> None:
        self._fake.end(job, ok=False, result=None, pod=self._rng.random() < 0.5)

    def _garbled(self, job: Job, run: _Run) -> None:
        self._change(job, run)
        self._fake.lock(job, held=False)
        self._fake.end(job, ok=True, result=None)

    def _end_by_deadline(self, job: Job, run: _Run) -> None:
        if run.locked:
            self._fake.lock(job, held=False)
        error = {"kind": "interrupted", "step": "init", "tail": ""}
        result = {"op": job.metadata.labels[keys.OP], "steps": [], "error": error}
        self._fake.end(job, ok=False, result=result, reason="DeadlineExceeded")
        del self._runs[job.metadata.uid]

    def _collect(self) -> None:
        """The garbage collector: what belongs to a Job goes with it, a Job with its object."""
        alive = {job.metadata.uid for job in self._door.list(JOBS).items}
        self._end_deleted_pods()
        for resource in (PODS, SECRETS):
            for item in self._door.list(resource).items:
                owner = next((r for r in item.metadata.owner_references if r.kind == "Job"), None)
                if owner is not None and owner.uid not in alive and not item.deleting:
                    self._door.delete(resource, item.metadata.name, item.metadata.namespace)
        for key in kept_pods(self._door, ""):
            release_pods(self._door, key, self._clock.now())

    def _end_deleted_pods(self) -> None:
        """As a kubelet does with one that is deleted before its container ran."""
        for found in self._door.list(PODS).items:
            if found.deleting and found.status.phase == "Pending":
                pod = PODS.copy(found)
                pod.status.phase = "Failed"
                self._door.update(PODS, pod, subresource="status")
