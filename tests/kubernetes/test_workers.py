"""Machines and pools of real Cluster API through real Terraform runs."""

import pytest

from captfctl.model import keys
from captfctl.model.ops import Op
from captfctl.model.resources import CLUSTERS, JOBS, TERRAFORM_MACHINES
from tests.e2e.scenarios import NAME, Story
from tests.e2e.site import eventually
from tests.kubernetes.workers import POOL, WORKER, Workers, machine, pool

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]


def applies(story: Story, kind: str) -> list[str]:
    labels = f"{keys.OP}={Op.APPLY},{keys.OWNER_KIND}={kind}"
    return [
        job.metadata.name for job in story.door.list(JOBS, story.namespace, labels=labels).items
    ]


def test_a_machine_and_a_pool_live_and_go_before_their_cluster(site):
    story = Story(site, "workers")
    story.create()
    story.wait_settled()
    workers = Workers(story)
    workers.apply(machine() + pool(replicas=2))

    ready = workers.wait_machine_ready()
    assert ready.spec.provider_id.startswith(f"test:///{story.namespace}/{WORKER}/")
    assert [a.address for a in ready.status.addresses] == ["10.0.0.7"]
    # Cluster API took over what the machine reports.
    eventually(lambda: workers.machine().spec.provider_id == ready.spec.provider_id, "the Machine")
    members = workers.wait_pool_ready()
    assert len(members.spec.provider_id_list) == members.status.replicas == 2

    site.kubectl(
        "patch",
        "machinepool",
        POOL,
        "-n",
        story.namespace,
        "--type=merge",
        "-p",
        '{"spec":{"replicas":3}}',
    )
    eventually(lambda: workers.pool().status.replicas == 3, lambda: "three members", 90)
    assert len(applies(story, "TerraformMachine")) == 1

    site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--timeout=180s")
    for resource in (CLUSTERS, TERRAFORM_MACHINES):
        assert story.door.list(resource, story.namespace).items == []
    assert story.door.list(JOBS, story.namespace).items == []


def test_a_machine_that_reports_to_be_gone_is_marked_for_cluster_api(site):
    story = Story(site, "unhealthy")
    story.create()
    story.wait_settled()
    workers = Workers(story)
    workers.apply(machine(state="terminated"))
    eventually(
        lambda: keys.REMEDIATE in workers.machine().metadata.annotations,
        lambda: workers.explain(),
        120,
    )
    eventually(lambda: story.events("RemediationRequested"), "the event, which is posted later", 30)


def test_an_autoscaled_pool_tells_cluster_api_how_many_members_it_has(site):
    story = Story(site, "scaled")
    story.create()
    story.wait_settled()
    workers = Workers(story)
    workers.apply(pool(replicas=1, most=3))
    workers.wait_pool_ready()
    eventually(lambda: workers.machine_pool().spec.replicas == 3, "three replicas", 60)
    assert workers.machine_pool().metadata.annotations[keys.REPLICAS_MANAGED_BY] == "captf"
