"""A machine and a pool of a cluster, and what Cluster API and a bootstrap provider do to them."""

import contextlib
import json
import random
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import NotFound
from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.kinds import CLUSTER, MACHINE, MACHINE_POOL, Kind
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    JOBS,
    MACHINE_POOLS,
    MACHINES,
    SECRETS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)
from tests.simulation.course import Broken
from tests.support.machine_world import (
    bootstrap_secret,
    machine,
    machine_pool,
    terraform_machine,
    terraform_machine_pool,
)

OWN: Final[Mapping[Kind, Resource[Any]]] = {
    CLUSTER: TERRAFORM_CLUSTERS,
    MACHINE: TERRAFORM_MACHINES,
    MACHINE_POOL: TERRAFORM_MACHINE_POOLS,
}
MUTATING = ("apply", "destroy", "restore")


class Workers:
    """What they need beside the objects that the simulation makes, and what must hold for them."""

    def __init__(self, door: Door, rng: random.Random) -> None:
        self._door, self._rng = door, rng
        self._made: set[str] = set()  # UIDs of machines whose apply succeeded

    def create(self, kind: Kind, namespace: str, name: str, cluster: str) -> None:
        """The object, its owner and its bootstrap data; nothing for a cluster."""
        if kind is CLUSTER:
            return
        secret = bootstrap_secret(name)
        secret.metadata.namespace = namespace
        self._door.create(SECRETS, secret, namespace)
        owner = machine() if kind is MACHINE else machine_pool()
        spec = owner.spec if kind is MACHINE else owner.spec.template.spec
        spec.infrastructure_ref.name = name
        spec.bootstrap.data_secret_name = f"{name}-bootstrap"
        owner.spec.cluster_name = cluster
        made = self._make(MACHINES if kind is MACHINE else MACHINE_POOLS, owner, namespace, name)
        obj = terraform_machine(made) if kind is MACHINE else terraform_machine_pool(made)
        obj.metadata.labels[keys.CLUSTER_NAME] = cluster
        self._make(OWN[kind], obj, namespace, name)

    def _make(self, resource: Resource[Any], obj: Any, namespace: str, name: str) -> Any:
        obj.api_version, obj.kind = resource.api_version, resource.kind
        obj.metadata.namespace, obj.metadata.name = namespace, name
        return self._door.create(resource, obj, namespace)

    def rotate(self, namespace: str, name: str) -> None:
        """Other bootstrap data, as a token that expired gives."""
        text = b64encode(str(self._rng.random()).encode()).decode()
        self._door.patch(SECRETS, f"{name}-bootstrap", namespace, {"data": {"value": text}})

    def bootstrap(self, namespace: str, name: str) -> str:
        """The data as a module is given it."""
        secret = self._door.get(SECRETS, f"{name}-bootstrap", namespace)
        return b64encode(secret.data["value"]).decode()

    def play_cluster_api(self) -> None:
        """A Cluster says that its infrastructure is there once that says so."""
        for obj in self._door.list(TERRAFORM_CLUSTERS).items:
            started = obj.status.initialization
            if started is None or not started.provisioned:
                continue
            meta = obj.metadata
            status = {"status": {"initialization": {"infrastructureProvisioned": True}}}
            with contextlib.suppress(NotFound):
                self._door.patch(CLUSTERS, meta.name, meta.namespace, status, subresource="status")

    # What must hold, always.

    def check(self) -> None:
        jobs = self._door.list(JOBS).items
        self._check_gate([job for job in jobs if not job.status.conditions])
        for job in jobs:
            if job.metadata.labels[keys.OP] == "apply" and job.metadata.controller is not None:
                self._check_apply(job)

    def _check_gate(self, running: list[Job]) -> None:
        """A cluster's mutation and one of its machines never overlap."""
        of_cluster: dict[str, list[str]] = {}
        of_members: dict[str, list[str]] = {}
        for job in running:
            if job.metadata.labels[keys.OP] in MUTATING:
                leads = job.metadata.labels[keys.OWNER_KIND] == CLUSTER.name
                jobs = of_cluster if leads else of_members
                jobs.setdefault(job.metadata.namespace, []).append(job.metadata.name)
        for namespace in of_cluster.keys() & of_members.keys():
            both = of_cluster[namespace] + of_members[namespace]
            raise Broken(f"a cluster and a machine of it are changed at the same time: {both}")

    def _check_apply(self, job: Job) -> None:
        uid = job.metadata.controller.uid
        ok = any(c.type == "Complete" and c.status == "True" for c in job.status.conditions)
        kind = job.metadata.labels[keys.OWNER_KIND]
        if kind == MACHINE.name and not job.status.conditions and uid in self._made:
            raise Broken(f"{job.metadata.name} applies a machine that is there")
        if kind == MACHINE_POOL.name and not job.status.conditions:
            self._check_exports(job, uid)
        if ok and self._told(job):
            self._made.add(uid)

    def _check_exports(self, job: Job, uid: str) -> None:
        """A pool is applied with other exports than those of its applied record only where it
        stops before it replaces something."""
        owner = job.metadata.controller.name
        applied = names.applied_record(MACHINE_POOL.name, owner)
        record = find(self._door, SECRETS, job.metadata.namespace, applied)
        run = find(self._door, SECRETS, job.metadata.namespace, names.run_secret(job.metadata.name))
        if record is None or run is None or keys.JOB not in record.metadata.annotations:
            return
        (container,) = job.spec.template.spec.containers
        guarded = "--guard-deletes" in container.args
        if _exports(run.data) != _exports(record.data) and not guarded:
            raise Broken(f"{job.metadata.name} applies exports that are held")

    def _told(self, job: Job) -> bool:
        """Whether its outcome was read as a success."""
        return job.metadata.annotations.get(keys.BOOKKEPT) == keys.TRUE


def _exports(data: Mapping[str, bytes]) -> object:
    return json.loads(data["terraform.tfvars.json"])["captf_cluster_outputs"]
