"""Reads that may be served from a cache (11 §11)."""

from collections.abc import Sequence
from typing import Protocol

from captfctl.cluster.door import Door
from captfctl.model import keys, names
from captfctl.model.core import Container, Job, PodSpec, PodTemplate
from captfctl.model.owner import Owner
from captfctl.model.resources import JOBS
from captfctl.terraform.books.results import is_finished
from captfctl.terraform.job.build import SOURCE_CONTAINER


class JobsReader(Protocol):
    """Managed Jobs as last seen. Of their pods' template only what `slim` keeps may be there."""

    def jobs_of(self, owner: Owner) -> Sequence[Job]:
        """Jobs with the owner's labels; those of an earlier namesake may be among them."""
        ...

    def cluster_jobs(self, namespace: str, cluster: str) -> Sequence[Job]:
        """Managed Jobs of everything that belongs to the Cluster of that name."""
        ...

    def running_jobs(self) -> Sequence[Job]:
        """Managed Jobs of all namespaces that have not finished."""
        ...


class DoorJobs:
    """A `JobsReader` without a cache, for one-shot use and tests."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def _list(self, namespace: str, labels: str) -> Sequence[Job]:
        return self._door.list(JOBS, namespace, labels=f"{keys.MANAGED}=true,{labels}").items

    def jobs_of(self, owner: Owner) -> Sequence[Job]:
        return self._list(owner.namespace, owner.selector)

    def cluster_jobs(self, namespace: str, cluster: str) -> Sequence[Job]:
        return self._list(namespace, f"{keys.CLUSTER_NAME}={names.label_value(cluster)}")

    def running_jobs(self) -> Sequence[Job]:
        jobs = self._door.list(JOBS, labels=f"{keys.MANAGED}=true").items
        return [job for job in jobs if not is_finished(job)]


def slim(job: Job) -> Job:
    """The Job with what is read of it, for caches: of its pods' template only the module's image.

    The template is most of a Job, and the same for all Jobs of an object.
    """
    images = [
        Container(name=container.name, image=container.image)
        for container in job.spec.template.spec.containers
        if container.name == SOURCE_CONTAINER
    ]
    job.spec.template = PodTemplate(spec=PodSpec(containers=images))
    return job


def own_jobs(reader: JobsReader, owner: Owner) -> list[Job]:
    """The object's Jobs. Those of an earlier object of the same name are left out (11 §2)."""
    return [job for job in reader.jobs_of(owner) if owner.controls(job.metadata)]
