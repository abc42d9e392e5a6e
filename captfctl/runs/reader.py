"""Reads that may be served from a cache (runs.md: A cache behind the server)."""

from collections.abc import Collection, Sequence
from typing import Protocol

from captfctl.cluster.door import Door, find
from captfctl.model import keys, names
from captfctl.model.core import Container, Job, PodSpec, PodTemplate
from captfctl.model.resources import JOBS
from captfctl.model.subject import Subject
from captfctl.runs.jobs import is_finished

Key = tuple[str, str]
"""Namespace and name."""


class JobsReader(Protocol):
    """Managed Jobs as last seen. Of their pods' template only what `slim` keeps may be there."""

    def jobs_of(self, subject: Subject) -> Sequence[Job]:
        """Jobs with the subject's labels; those of an earlier namesake may be among them."""
        ...

    def group_jobs(self, namespace: str, group: str) -> Sequence[Job]:
        """Managed Jobs of all members of the group of that name."""
        ...

    def running_keys(self, namespace: str = "", group: str = "") -> Collection[Key]:
        """Managed Jobs that have not finished: of all namespaces, or of one group of one."""
        ...

    def has_job(self, namespace: str, name: str) -> bool:
        """Whether the managed Job of that name is shown, finished or not."""
        ...


class DoorJobs:
    """A `JobsReader` without a cache, for one-shot use and tests."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def _list(self, namespace: str, labels: str) -> Sequence[Job]:
        return self._door.list(JOBS, namespace, labels=f"{keys.MANAGED}=true,{labels}").items

    def jobs_of(self, subject: Subject) -> Sequence[Job]:
        selector = ",".join(f"{key}={value}" for key, value in subject.labels.items())
        return self._list(subject.namespace, selector)

    def group_jobs(self, namespace: str, group: str) -> Sequence[Job]:
        return self._list(namespace, f"{keys.CLUSTER_NAME}={names.label_value(group)}")

    def running_keys(self, namespace: str = "", group: str = "") -> Collection[Key]:
        labels = f"{keys.MANAGED}=true"
        if group:
            labels += f",{keys.CLUSTER_NAME}={names.label_value(group)}"
        jobs = self._door.list(JOBS, namespace, labels=labels).items
        return [job.key for job in jobs if not is_finished(job)]

    def has_job(self, namespace: str, name: str) -> bool:
        return find(self._door, JOBS, namespace, name) is not None


def slim(job: Job) -> Job:
    """The Job with what is read of it, for caches: of its pods' template only the main image.

    The template is most of a Job, and the same for all Jobs of an object.
    """
    main = job.spec.template.spec.containers[:1]
    images = [Container(name=container.name, image=container.image) for container in main]
    job.spec.template = PodTemplate(spec=PodSpec(containers=images))
    return job


def own_jobs(reader: JobsReader, subject: Subject) -> list[Job]:
    """The subject's Jobs. Those of an earlier object of the same name are left out
    (runs.md: Names of Jobs)."""
    return [job for job in reader.jobs_of(subject) if subject.controls(job.metadata)]
