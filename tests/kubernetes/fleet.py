"""Many objects at once, each with a run that takes no longer than it must."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from captfctl.cluster.live import LiveDoor
from captfctl.model import keys
from captfctl.model.conditions import find
from captfctl.model.core import Event, Job, Namespace, Secret
from captfctl.model.kinds import INFRASTRUCTURE
from captfctl.model.meta import ObjectMeta
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    EVENTS,
    JOBS,
    LEASES,
    MACHINE_POOLS,
    MACHINES,
    NAMESPACES,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)
from captfctl.model.terraform import TerraformObject
from captfctl.runs.jobs import is_finished
from tests.e2e.site import QUICK_IMAGE

ENDED = {"JobSucceeded", "JobFailed", "JobDeadlineExceeded", "JobInterrupted"}


KINDS: tuple[Resource[Any], ...] = (
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINES,
    TERRAFORM_MACHINE_POOLS,
)
_BOOTSTRAP = "bootstrap"


class Fleet:
    """`clusters` with so many `machines` and `pools` each, in one namespace, with what Cluster API
    has for them; each run sleeps for `seconds`."""

    def __init__(
        self,
        door: LiveDoor,
        namespace: str,
        clusters: int,
        *,
        machines: int = 0,
        pools: int = 0,
        seconds: float = 0,
        image: str = QUICK_IMAGE,
    ) -> None:
        self.door = door
        self.namespace = namespace
        self.clusters = clusters
        self.machines = machines
        self.pools = pools
        self.seconds = seconds
        self.image = image
        self.first = 0
        """The number of the first cluster, which the names are made of."""

    @property
    def size(self) -> int:
        """All objects."""
        return self.clusters * (1 + self.machines + self.pools)

    @property
    def names(self) -> list[str]:
        """Those of the clusters."""
        return [f"c{number:03}" for number in range(self.first, self.first + self.clusters)]

    def _machine_names(self, cluster: str) -> list[str]:
        return [f"{cluster}-m{number}" for number in range(self.machines)]

    def pool_names(self, cluster: str) -> list[str]:
        return [f"{cluster}-p{number}" for number in range(self.pools)]

    def create(self) -> None:
        namespace = Namespace(
            api_version="v1", kind="Namespace", metadata=ObjectMeta(name=self.namespace)
        )
        self.door.create(NAMESPACES, namespace)
        self._secret("credentials", TOKEN=b"none")
        self._secret(_BOOTSTRAP, value=b"#cloud-config", format=b"cloud-config")
        self.door.create(TERRAFORM_CLUSTER_IDENTITIES.untyped(), self._identity())
        for cluster in self.names:
            for resource, obj in self._family(cluster):
                self.door.create(resource.untyped(), obj, self.namespace)

    def grow(self, machines: int) -> Iterator[str]:
        """Give each cluster so many machines; each one's name once it is there."""
        before, self.machines = self.machines, machines
        for cluster in self.names:
            for name in self._machine_names(cluster)[before:]:
                for resource, obj in self._machine(cluster, name):
                    self.door.create(resource.untyped(), obj, self.namespace)
                yield name

    def _secret(self, name: str, **data: bytes) -> None:
        meta = ObjectMeta(name=name, namespace=self.namespace)
        secret = Secret(api_version="v1", kind="Secret", metadata=meta, data=data)
        self.door.create(SECRETS, secret, self.namespace)

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

    def _family(self, cluster: str) -> Iterator[tuple[Resource[Any], dict[str, Any]]]:
        """A cluster and all that belongs to it."""
        yield TERRAFORM_CLUSTERS, self._infrastructure(TERRAFORM_CLUSTERS, cluster)
        network = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}}
        reference = _reference(TERRAFORM_CLUSTERS, cluster)
        spec: dict[str, Any] = {"clusterNetwork": network, "infrastructureRef": reference}
        yield CLUSTERS, self._object(CLUSTERS, cluster, spec)
        for name in self._machine_names(cluster):
            yield from self._machine(cluster, name)
        for name in self.pool_names(cluster):
            pool = self._infrastructure(TERRAFORM_MACHINE_POOLS, name)
            # Once all is settled, the next test has the machine for itself.
            pool["spec"]["membershipRefreshIntervalSeconds"] = 86400
            yield TERRAFORM_MACHINE_POOLS, pool
            spec = _machine_spec(cluster, _reference(TERRAFORM_MACHINE_POOLS, name))
            spec = {"clusterName": cluster, "replicas": 1, "template": {"spec": spec}}
            yield MACHINE_POOLS, self._object(MACHINE_POOLS, name, spec)

    def _machine(self, cluster: str, name: str) -> Iterator[tuple[Resource[Any], dict[str, Any]]]:
        yield TERRAFORM_MACHINES, self._infrastructure(TERRAFORM_MACHINES, name)
        spec = _machine_spec(cluster, _reference(TERRAFORM_MACHINES, name))
        yield MACHINES, self._object(MACHINES, name, spec)

    def _infrastructure(self, resource: Resource[Any], name: str) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "source": {"image": self.image},
            "variables": {"seconds": self.seconds},
        }
        if resource is TERRAFORM_CLUSTERS:  # the others inherit it
            spec["identityRef"] = {"name": self.namespace}
        return self._object(resource, name, spec)

    def _object(self, resource: Resource[Any], name: str, spec: dict[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        }

    def change(self) -> None:
        """A new wish for every object that can be changed: machines cannot."""
        self.seconds += 0.125
        wish = {"spec": {"variables": {"seconds": self.seconds}}}
        for cluster in self.names:
            self.door.patch(TERRAFORM_CLUSTERS, cluster, self.namespace, wish)
            for name in self.pool_names(cluster):
                self.door.patch(TERRAFORM_MACHINE_POOLS, name, self.namespace, wish)

    def objects(self) -> list[TerraformObject]:
        return [obj for kind in KINDS for obj in self.door.list(kind, self.namespace).items]

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


def _reference(resource: Resource[Any], name: str) -> dict[str, str]:
    return {"apiGroup": INFRASTRUCTURE, "kind": resource.kind, "name": name}


def _machine_spec(cluster: str, reference: dict[str, str]) -> dict[str, Any]:
    return {
        "clusterName": cluster,
        "version": "v1.34.0",
        "bootstrap": {"dataSecretName": _BOOTSTRAP},
        "infrastructureRef": reference,
    }


def _settled(obj: TerraformObject) -> bool:
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
