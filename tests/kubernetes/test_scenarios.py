"""The scenarios on a real Kubernetes with real Cluster API."""

from functools import partial

import pytest

from tests.e2e import scenarios, states
from tests.e2e.counted import Counted
from tests.e2e.managed import NODE
from tests.e2e.scenarios import Story
from tests.e2e.site import IMAGE
from tests.support.binaries import CLUSTER_STORIES

pytestmark = CLUSTER_STORIES


def test_a_cluster_lives_and_dies_and_leaves_nothing_behind(site):
    scenarios.lives_and_dies(Story(site, "life"))


def test_a_protected_cluster_is_kept_until_the_protection_is_taken_off(site):
    scenarios.protected_cluster_is_kept(Story(site, "protected"))


def test_a_namespace_that_is_deleted_first_says_what_can_be_done(site):
    scenarios.namespace_is_deleted_first(Story(site, "doomed"))


def test_a_killed_manager_adopts_the_run_it_had(site):
    scenarios.manager_is_killed_while_terraform_applies(Story(site, "crash", seconds=8))


def test_a_killed_node_agent_adopts_the_run_it_had(site):
    scenarios.node_is_killed_while_terraform_applies(Story(site, "node", seconds=8))


def test_a_killed_runner_is_a_failure_and_the_next_inputs_apply(site):
    scenarios.runner_is_killed_while_terraform_applies(Story(site, "runner", seconds=8))


def test_a_killed_terraform_is_a_failure_and_its_lock_is_taken_off(site):
    scenarios.terraform_is_killed_while_it_applies(Story(site, "terraform", seconds=8))


def test_a_deleted_pod_tells_its_result_before_it_goes(site):
    scenarios.pod_is_deleted_while_terraform_applies(Story(site, "deleted", seconds=30))


def test_a_drained_pod_tells_its_result_before_it_goes(site):
    scenarios.node_is_drained_while_terraform_applies(Story(site, "drained", seconds=30), NODE)


def test_a_deleted_job_ends_in_order_and_is_tried_again_at_once(site):
    scenarios.job_is_deleted_while_terraform_applies(Story(site, "vanished", seconds=20))


def test_a_run_that_reaches_its_deadline_says_so(site):
    scenarios.run_reaches_its_deadline(Story(site, "deadline", seconds=60))


def test_a_tree_is_ended_while_its_supervisor_is_frozen(site):
    scenarios.supervisor_is_frozen_and_its_pod_deleted_by_force(Story(site, "frozen", seconds=40))


def test_a_run_of_a_frozen_node_is_not_taken_for_dead(site):
    story = Story(site, "ice", seconds=40)
    scenarios.node_is_frozen_while_its_pod_is_deleted_by_force(story, site.node)


@pytest.fixture
def counted(site, tmp_path):
    return Counted(site, tmp_path)


def test_a_state_that_could_not_be_stored_is_stored_when_the_server_is_back(site, counted):
    story = Story(site, "away")
    scenarios.server_is_away_while_an_apply_ends(story, counted, *outage(site))


def test_a_state_that_its_dead_run_could_not_store_is_stored_by_the_next(site, counted):
    story = Story(site, "dead")
    scenarios.run_dies_with_a_state_that_it_could_not_store(story, counted, *outage(site))
    scenarios.change_stores_what_was_left(story)
    assert counted.times == 1


def outage(site):
    """What takes the API server away, and what brings it back."""
    server = site.plane.processes["kube-apiserver"]
    return server.kill, partial(site.plane.restart, "kube-apiserver")


def test_an_emptied_state_creates_nothing_twice_and_skips_no_destroy(site):
    states.emptied_state_is_held(Story(site, "emptied"))


def test_an_older_state_is_held_also_when_the_status_is_lost(site):
    states.older_state_is_held(Story(site, "older"))


def test_another_state_is_used_once_a_person_accepts_it(site):
    states.another_state_is_accepted_by_a_person(Story(site, "swapped"))


def test_an_image_that_cannot_be_pulled_is_told_and_corrected(site):
    story = Story(site, "image")
    story.replace(IMAGE, "registry.example.com/missing/cluster:v1")
    scenarios.image_that_cannot_be_pulled_is_told_and_corrected(story, IMAGE)


def test_an_object_without_its_image_is_deleted(site):
    story = Story(site, "imageless")
    story.replace(IMAGE, "registry.example.com/missing/cluster:v1")
    scenarios.object_without_its_image_is_deleted(story)


def test_the_manager_writes_under_one_name(site):
    scenarios.manager_writes_under_one_name(Story(site, "owner"))


def test_a_module_that_refuses_its_variables_is_told_and_corrected_at_once(site):
    scenarios.module_refuses_its_variables(Story(site, "refused", subnets=0))
