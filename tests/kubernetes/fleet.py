"""Many objects at once, each with a run that takes no longer than it must."""

from collections import Counter
from typing import Any

from captfctl.cluster.live import LiveDoor
from captfctl.model import keys
from captfctl.model.conditions import find
from captfctl.model.core import Event, Job, Namespace, Secret
from captfctl.model.kinds import INFRASTRUCTURE
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import (
    CLUSTERS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
)
from captfctl.model.terraform import TerraformCluster
from captfctl.runs.jobs import is_finished
from tests.e2e.site import QUICK_IMAGE

ENDED = {"JobSucceeded", "JobFailed", "JobDeadlineExceeded", "JobInterrupted"}


class Fleet:
    """`size` objects with their Clusters in one namespace; each run sleeps for `seconds`."""

    def __init__(self, door: LiveDoor, namespace: str, size: int, *, seconds: float = 0) -> None:
        self.door = door
        self.namespace = namespace
        self.size = size
        self.seconds = seconds

    @property
    def names(self) -> list[str]:
        return [f"c{number:03}" for number in range(self.size)]

    def create(self) -> None:
        namespace = Namespace(
            api_version="v1", kind="Namespace", metadata=ObjectMeta(name=self.namespace)
        )
        self.door.create(NAMESPACES, namespace)
        secret = Secret(
            api_version="v1",
            kind="Secret",
            metadata=ObjectMeta(name="credentials", namespace=self.namespace),
            data={"TOKEN": b"none"},
        )
        self.door.create(SECRETS, secret, self.namespace)
        self.door.create(TERRAFORM_CLUSTER_IDENTITIES.untyped(), self._identity())
        for name in self.names:
            self.door.create(TERRAFORM_CLUSTERS.untyped(), self._object(name), self.namespace)
            self.door.create(CLUSTERS.untyped(), self._cluster(name), self.namespace)

    def _identity(self) -> dict[str, Any]:
        return {
            "apiVersion": TERRAFORM_CLUSTER_IDENTITIES.api_version,
            "kind": TERRAFORM_CLUSTER_IDENTITIES.kind,
            "metadata": {"name": self.namespace},
            "spec": {
                "secretRef": {"name": "credentials", "namespace": self.namespace},
                "allowedNamespaces": {"list": [self.namespace]},
            },
        }

    def _object(self, name: str) -> dict[str, Any]:
        return {
            "apiVersion": TERRAFORM_CLUSTERS.api_version,
            "kind": TERRAFORM_CLUSTERS.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "source": {"image": QUICK_IMAGE},
                "identityRef": {"name": self.namespace},
                "variables": {"seconds": self.seconds},
            },
        }

    def _cluster(self, name: str) -> dict[str, Any]:
        return {
            "apiVersion": CLUSTERS.api_version,
            "kind": CLUSTERS.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
                "infrastructureRef": {
                    "apiGroup": INFRASTRUCTURE,
                    "kind": TERRAFORM_CLUSTERS.kind,
                    "name": name,
                },
            },
        }

    def change(self) -> None:
        """A new wish for every object."""
        self.seconds += 0.125
        for name in self.names:
            wish = {"spec": {"variables": {"seconds": self.seconds}}}
            self.door.patch(TERRAFORM_CLUSTERS, name, self.namespace, wish)

    def objects(self) -> list[TerraformCluster]:
        return self.door.list(TERRAFORM_CLUSTERS, self.namespace).items

    def jobs(self) -> list[Job]:
        return self.door.list(JOBS, self.namespace, labels=f"{keys.MANAGED}={keys.TRUE}").items

    def running(self) -> int:
        return sum(not is_finished(job) for job in self.jobs())

    def unsettled(self) -> list[str]:
        """What is not Ready with everything applied and bookkept."""
        return [obj.metadata.name for obj in self.objects() if not _settled(obj)]

    def settled(self) -> bool:
        return not self.unsettled() and all(_bookkept(job) for job in self.jobs())

    def leases(self) -> list[str]:
        """Our leases that are left; the state locks of the runtime are not ours."""
        found = self.door.list(LEASES, self.namespace, labels=keys.LEASE).items
        return [lease.metadata.name for lease in found]

    def outcomes(self) -> Counter[str]:
        """How many events tell of the end of each Job: more than one means bookkept twice."""
        return Counter(
            event.related.name
            for event in self.door.list(EVENTS, self.namespace).items
            if _tells_the_end(event) and event.related
        )

    def explain(self) -> str:
        lines = [f"{len(self.unsettled())} of {self.size} not settled"]
        for obj in self.objects():
            if not _settled(obj):
                said = [f"{c.type}={c.status}/{c.reason}" for c in obj.status.conditions]
                lines.append(f"{obj.metadata.name}: {', '.join(said)}")
        return "\n".join(lines[:6])


def _settled(obj: TerraformCluster) -> bool:
    ready, applied = (find(obj.status.conditions, kind) for kind in ("Ready", "InputsApplied"))
    return (
        obj.status.observed_generation == obj.metadata.generation
        and obj.status.active_job is None
        and ready is not None
        and ready.status == "True"
        and applied is not None
        and applied.status == "True"
    )


def _bookkept(job: Job) -> bool:
    return keys.BOOKKEPT in job.metadata.annotations


def _tells_the_end(event: Event) -> bool:
    return event.reason in ENDED
