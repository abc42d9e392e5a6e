"""The fleet example: a cluster and what belongs to it, on one machine with real Terraform."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from captfctl.cluster.live import LiveDoor
from captfctl.model import keys
from captfctl.model.core import Job
from captfctl.model.resources import (
    JOBS,
    LEASES,
    MACHINE_POOLS,
    MACHINES,
    PODS,
    SECRETS,
    TERRAFORM_MACHINE_POOLS,
)
from captfctl.reconcile.kinds import RULES
from tests.e2e.site import ROOT, Captfctl, LocalSite
from tests.support.binaries import NEEDS_TERRAFORM

FLEET = ROOT / "examples" / "fleet"
MEMBERS = (
    "terraformmachine/fleet-1",
    "terraformmachine/fleet-2",
    "terraformmachine/fleet-3",
    "terraformmachinepool/fleet-pool",
)

pytestmark = [
    pytest.mark.terraform,
    NEEDS_TERRAFORM,
]


class Fleet:
    """The example's objects, in a folder where they can be changed, on a running control plane."""

    def __init__(self, site: LocalSite, folder: Path) -> None:
        self.site, self.door = site, site.door()
        self.objects = folder / "fleet"
        shutil.copytree(FLEET, self.objects, ignore=shutil.ignore_patterns("modules"))

    def captfctl(self, command: str, *more: str) -> list[str]:
        """The lines of a command that ends well."""
        log = self.site.folder / f"{command}.log"
        where = (f"-f{self.objects}", "--local", f"--data={self.site.data}")
        ran = Captfctl(log, command, *where, *more)
        ran.launch()
        assert ran.wait(120) == 0, ran.output()
        return ran.output().splitlines()

    def change(self, old: str, new: str) -> None:
        file = self.objects / "cluster.yaml"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    def jobs(self) -> dict[str, Job]:
        return {job.metadata.name: job for job in self.door.list(JOBS, "default").items}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    site = LocalSite(tmp_path / "site")
    for role in ("cluster", "machine", "pool"):
        module = FLEET / "modules" / role
        site.add_image(f"registry.example.com/fleet/{role}:v1", module=module)
    site.start()
    try:
        yield Fleet(site, tmp_path)
    finally:
        site.stop()


def number_of(lines: list[str], name: str, text: str) -> int:
    """The first line about an object that has the text."""
    return next(
        number for number, line in enumerate(lines) if line.startswith(f"{name} ") and text in line
    )


def everything(door: LiveDoor) -> list[str]:
    kinds = [
        JOBS,
        PODS,
        SECRETS,
        LEASES,
        MACHINES,
        MACHINE_POOLS,
        *(rules.resource for rules in RULES.values()),
    ]
    return [
        f"{resource.kind} {obj.metadata.name}"
        for resource in kinds
        for obj in door.list(resource, "default").items
    ]


def test_a_fleet_comes_up_changes_and_goes_in_order(fleet: Fleet) -> None:
    told = fleet.captfctl("reconcile")
    assert len([line for line in told if "  ready after " in line]) == 1 + len(MEMBERS)
    provisioned = number_of(told, "terraformcluster/fleet", "Provisioned: ")
    assert all(number_of(told, name, "JobCreated: apply") > provisioned for name in MEMBERS)
    for machine in fleet.door.list(MACHINES, "default").items:
        zone = machine.spec.failure_domain
        assert machine.spec.provider_id.startswith(f"example:///{zone}/")
    pool = fleet.door.get(TERRAFORM_MACHINE_POOLS, "fleet-pool", "default")
    assert len(pool.spec.provider_id_list) == pool.status.replicas == 2
    before = fleet.jobs()
    assert {job.metadata.labels[keys.OP] for job in before.values()} == {"apply"}

    assert not any("JobCreated" in line for line in fleet.captfctl("reconcile"))
    assert fleet.jobs().keys() == before.keys()

    fleet.change("mtu: 1500", "mtu: 9000")
    told = fleet.captfctl("reconcile")
    (created,) = [line for line in told if "JobCreated" in line]
    assert created.startswith("terraformcluster/fleet ")

    told = fleet.captfctl("delete", "--yes")
    assert told[0].startswith(f"{1 + len(MEMBERS)} objects: ")
    last = max(number_of(told, name, "Destroyed: ") for name in MEMBERS)
    assert last < number_of(told, "terraformcluster/fleet", "JobCreated: destroy")
    assert everything(fleet.door) == []
