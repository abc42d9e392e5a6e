"""The Job controller of the embedded control plane: a batch/v1 Job becomes pods and an outcome.

It does what Kubernetes' own does for Jobs that want one success (`completions` and `parallelism` 1,
or unset): one pod at a time, as many failures as `backoffLimit` allows, `activeDeadlineSeconds`,
`suspend`, `ttlSecondsAfterFinished`, the finalizer that keeps a pod until it is counted, conditions
and events under the same names. A Job asks for something else in vain: it gets a condition and an
event that say so, and no pod.

Left out: Jobs of several pods, indexed Jobs, success and pod failure policies,
`podReplacementPolicy: Failed`, manual selectors, `managedBy`, adopting pods by labels.
"""

import contextlib
import logging
import random
from datetime import datetime
from typing import Any

import msgspec

from captfctl.backoff import doubled
from captfctl.clock import Clock
from captfctl.cluster.door import Door, Propagation, find
from captfctl.cluster.errors import AlreadyExists, Conflict, Invalid, NotFound
from captfctl.controller import Controller, Handler, Informer, Result
from captfctl.embedded.events import Events
from captfctl.embedded.job_status import (
    TRACKING,
    Plan,
    Tally,
    is_finished,
    plan_status,
    unsupported,
)
from captfctl.model.core import Job, ObjectReference, Pod
from captfctl.model.keys import JOB_NAME
from captfctl.model.meta import OwnerReference, whole_seconds
from captfctl.model.resource import Document
from captfctl.model.resources import JOBS, PODS

COMPONENT = "job-controller"
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_FIRST_POD_DELAY = 10.0
_LONGEST_POD_DELAY = 600.0
_BY_JOB = "job"

log = logging.getLogger(__name__)
Key = tuple[str, str]


class JobController:
    """`workers` Jobs are worked on at a time. `chance` draws the pods' names."""

    def __init__(
        self, door: Door, clock: Clock, *, workers: int = 4, chance: random.Random | None = None
    ) -> None:
        self._door = door
        self._clock = clock
        self._chance = chance or random.SystemRandom()
        self._jobs = Informer(door, JOBS, clock)
        self._pods = Informer(door, PODS, clock, indexes={_BY_JOB: _job_name})
        self._controller: Controller[Key] = Controller(
            COMPONENT, self.reconcile, clock, workers=workers
        )
        self._events = Events(door, clock, COMPONENT, COMPONENT)

    def start(self) -> None:
        """Follow Jobs and pods from now on."""
        queue = self._controller.queue
        self._jobs.add_handler(
            Handler(
                on_add=lambda job: queue.add(job.key),
                on_update=lambda _, job: queue.add(job.key),
                on_delete=lambda job: queue.add(job.key),
            )
        )
        self._pods.add_handler(
            Handler(
                on_add=self._pod_changed,
                on_update=lambda _, pod: self._pod_changed(pod),
                on_delete=self._pod_changed,
            )
        )
        self._pods.start()
        self._jobs.start()
        self._controller.start()

    def stop(self, timeout: float) -> bool:
        """Tell whether everything ended; each part gets `timeout` seconds."""
        stopped = [self._controller.stop(timeout), self._jobs.stop(timeout)]
        return all([*stopped, self._pods.stop(timeout)])

    def _pod_changed(self, pod: Pod) -> None:
        name = _owner(pod).name
        if name:
            self._controller.queue.add((pod.metadata.namespace, name))

    def reconcile(self, key: Key) -> Result:
        """One look at one Job, everything read again. Raises what the door raises."""
        namespace, name = key
        document = find(self._door, JOBS.untyped(), namespace, name)
        job = None if document is None else msgspec.convert(document, Job)
        self._free_orphans(namespace, name, job)
        if job is None or document is None:
            return Result()
        problem = unsupported(document)
        if problem:
            self._refuse(job, problem)
            return Result()
        return self._work(job, document)

    def _work(self, job: Job, document: Document) -> Result:
        now = self._clock.now()
        pods = self._own_pods(job)
        if is_finished(job):
            for pod in pods:
                self._free(pod)
            return self._expire(job, now)
        plan = plan_status(job, pods, now)
        if plan.stop_pods:
            # The reason first: a pod that is being deleted counts as a failure of its own.
            job = self._write(job, plan)
            pods = self._stop_pods(job, pods)
            plan = plan_status(job, pods, now)
        if plan.tally.to_count:
            job = self._count(job, plan.tally)
            pods = self._own_pods(job)
            plan = plan_status(job, pods, now)
        if plan.start_pod and not job.deleting:
            wait = self._pod_delay(plan.tally, now)
            if wait > 0:
                self._write(job, plan)
                return Result(requeue_after=wait)
            created = self._create_pod(job, document)
            plan = plan_status(job, [*pods, created], now)
        self._write(job, plan)
        return Result(requeue_after=plan.look_again)

    def _count(self, job: Job, count: Tally) -> Job:
        """Note down what ended, then let the pods go: a crash in between counts nothing twice."""
        noted = {"uncountedTerminatedPods": msgspec.to_builtins(count.uncounted)}
        job = self._patch(job, noted)
        for pod in count.to_count:
            self._free(pod)
        return job

    # Pods.

    def _own_pods(self, job: Job) -> list[Pod]:
        """Read from the server: a pod created a moment ago must not be missed, or two would run."""
        uid = job.metadata.uid
        found = self._door.list(PODS, job.metadata.namespace, labels=f"{CONTROLLER_UID}={uid}")
        return [pod for pod in found.items if _owner(pod).uid == uid]

    def _create_pod(self, job: Job, document: Document) -> Pod:
        while True:
            body = pod_document(document, job, self._draw_suffix())
            try:
                made = self._door.create(PODS.untyped(), body, job.metadata.namespace)
            except AlreadyExists:
                continue
            except Invalid as problem:
                self._warn(job, "FailedCreate", f"Error creating: {problem}")
                raise
            pod = msgspec.convert(made, Pod)
            self._tell(job, "SuccessfulCreate", f"Created pod: {pod.metadata.name}")
            return pod

    def _draw_suffix(self) -> str:
        return "".join(self._chance.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))

    def _stop_pods(self, job: Job, pods: list[Pod]) -> list[Pod]:
        """Delete what still runs, with its grace period; the pods as they are then."""
        for pod in pods:
            if pod.status.phase in ("Succeeded", "Failed") or pod.deleting:
                continue
            if job.spec.suspend:
                self._free(pod)  # stopped on purpose: no failure
            try:
                self._door.delete(
                    PODS, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid
                )
            except (NotFound, Conflict):
                continue
            self._tell(job, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
        return self._own_pods(job)

    def _free(self, pod: Pod) -> None:
        """The pod is counted: take the finalizer off."""
        if TRACKING not in pod.metadata.finalizers:
            return
        rest = [name for name in pod.metadata.finalizers if name != TRACKING]
        try:
            self._door.patch(
                PODS,
                pod.metadata.name,
                pod.metadata.namespace,
                {"metadata": {"finalizers": rest or None}},
                resource_version=pod.metadata.resource_version,
            )
        except NotFound:
            return

    def _free_orphans(self, namespace: str, name: str, job: Job | None) -> None:
        """Pods of an earlier Job of this name, or of one that is gone, are counted by nobody."""
        uid = job.metadata.uid if job else ""
        for pod in self._pods.by_index(_BY_JOB, f"{namespace}/{name}"):
            if _owner(pod).uid != uid:
                self._free(pod)

    def _pod_delay(self, tally: Tally, now: datetime) -> float:
        """Seconds until the next pod may start after failures: 10, 20, 40, … at most 600."""
        if not tally.failed or tally.last_failure is None:
            return 0.0
        delay = doubled(_FIRST_POD_DELAY, tally.failed - 1, _LONGEST_POD_DELAY)
        return max(0.0, delay - (now - tally.last_failure).total_seconds())

    # The Job.

    def _write(self, job: Job, plan: Plan) -> Job:
        if plan.patch:
            job = self._patch(job, plan.patch)
        for warning, reason, note in plan.events:
            (self._warn if warning else self._tell)(job, reason, note)
        return job

    def _patch(self, job: Job, status: dict[str, Any]) -> Job:
        return self._door.patch(
            JOBS,
            job.metadata.name,
            job.metadata.namespace,
            {"status": status},
            resource_version=job.metadata.resource_version,
            subresource="status",
        )

    def _expire(self, job: Job, now: datetime) -> Result:
        """`ttlSecondsAfterFinished`."""
        ttl = job.spec.ttl_seconds_after_finished
        ended = [c.last_transition_time for c in job.status.conditions if c.last_transition_time]
        if ttl is None or job.deleting or not ended:
            return Result()
        left = ttl - (now - max(ended)).total_seconds()
        if left > 0:
            return Result(requeue_after=left)
        with contextlib.suppress(NotFound, Conflict):
            self._door.delete(
                JOBS,
                job.metadata.name,
                job.metadata.namespace,
                uid=job.metadata.uid,
                propagation=Propagation.FOREGROUND,
            )
        return Result()

    def _refuse(self, job: Job, problem: str) -> None:
        """Say once, in a condition and an event, that nothing will come of this Job."""
        self._warn(job, "Unsupported", problem)
        condition = {
            "type": "Unsupported",
            "status": "True",
            "reason": "UnsupportedJob",
            "message": problem,
            "lastTransitionTime": msgspec.to_builtins(whole_seconds(self._clock.now())),
        }
        if any(c.type == "Unsupported" for c in job.status.conditions):
            return
        self._patch(job, {"conditions": [condition]})

    def _tell(self, job: Job, reason: str, note: str) -> None:
        self._events.normal(_reference(job), reason, note, "Run")

    def _warn(self, job: Job, reason: str, note: str) -> None:
        self._events.warning(_reference(job), reason, note, "Run")


def pod_document(document: Document, job: Job, suffix: str) -> Document:
    """The pod of a Job: its template, named `<job>-<suffix>`, labelled and owned."""
    template: Document = document["spec"]["template"]
    given: Document = template.get("metadata") or {}
    uid, name = job.metadata.uid, job.metadata.name
    labels = {
        **(given.get("labels") or {}),
        JOB_NAME: name,
        "job-name": name,
        CONTROLLER_UID: uid,
        "controller-uid": uid,
    }
    owner = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "name": f"{name[:57]}-{suffix}",
        "namespace": job.metadata.namespace,
        "labels": labels,
        "ownerReferences": [owner],
        "finalizers": [*(given.get("finalizers") or []), TRACKING],
    }
    if given.get("annotations"):
        metadata["annotations"] = given["annotations"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _owner(pod: Pod) -> OwnerReference:
    """The Job that controls the pod; an empty reference when none does."""
    owner = pod.metadata.controller
    return owner if owner is not None and owner.kind == JOBS.kind else OwnerReference()


def _job_name(pod: Pod) -> list[str]:
    name = _owner(pod).name
    return [f"{pod.metadata.namespace}/{name}"] if name else []


def _reference(job: Job) -> ObjectReference:
    return ObjectReference(
        api_version=JOBS.api_version,
        kind=JOBS.kind,
        namespace=job.metadata.namespace,
        name=job.metadata.name,
        uid=job.metadata.uid,
    )
