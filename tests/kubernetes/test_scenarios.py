"""The scenarios on a real Kubernetes with real Cluster API."""

import shutil
from functools import partial

import pytest

from tests.e2e import scenarios
from tests.e2e.counted import COUNTED, Counted
from tests.e2e.scenarios import Story

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on PATH"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH"),
]


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


def test_a_run_that_reaches_its_deadline_says_so(site):
    scenarios.run_reaches_its_deadline(Story(site, "deadline", seconds=60))


def test_a_tree_is_ended_while_its_supervisor_is_frozen(site):
    scenarios.supervisor_is_frozen_and_its_pod_deleted_by_force(Story(site, "frozen", seconds=40))


def test_a_run_of_a_frozen_node_is_not_taken_for_dead(site):
    story = Story(site, "ice", seconds=40)
    scenarios.node_is_frozen_while_its_pod_is_deleted_by_force(story, site.node.child.pid)


def test_a_state_that_could_not_be_stored_is_stored_when_the_server_is_back(site, tmp_path):
    counted = Counted(tmp_path)
    site.add_image(COUNTED, module=counted.module)
    server = site.plane.processes["kube-apiserver"]
    story = Story(site, "away")
    back = partial(site.plane.restart, "kube-apiserver")
    scenarios.server_is_away_while_an_apply_ends(story, counted, server.kill, back)


def test_the_manager_writes_under_one_name(site):
    scenarios.manager_writes_under_one_name(Story(site, "owner"))


def test_a_module_that_refuses_its_variables_is_told_and_corrected_at_once(site):
    scenarios.module_refuses_its_variables(Story(site, "refused", subnets=0))
