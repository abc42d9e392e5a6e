"""First applies that never began, on a real control plane."""

import pytest

from tests.e2e import never_began
from tests.e2e.gated import Gate
from tests.e2e.scenarios import Story
from tests.support.binaries import CLUSTER_STORIES

pytestmark = CLUSTER_STORIES


@pytest.fixture
def gate(site, tmp_path):
    return Gate(site, tmp_path)


def test_a_first_apply_whose_runner_dies_in_init_asks_nobody(site, gate):
    never_began.dies_in_init(Story(site, "init"), gate, never_began.kill_runner)


def test_a_first_apply_whose_pod_vanishes_in_init_asks_nobody(site, gate):
    never_began.dies_in_init(Story(site, "podless"), gate, never_began.remove_pod)


def test_the_lock_of_an_init_that_died_is_in_nobodys_way(site, gate):
    never_began.dies_in_init_with_the_lock(Story(site, "locked"), gate)


def test_an_object_whose_first_apply_dies_in_init_is_deleted(site, gate):
    never_began.dies_in_init_while_it_is_deleted(Story(site, "init-deleted"), gate)


def test_a_deleted_job_of_an_image_that_does_not_exist_asks_nobody(site):
    never_began.job_of_a_missing_image_is_deleted(Story(site, "jobless"))
