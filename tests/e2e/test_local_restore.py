"""The restore drill with real Terraform on the embedded control plane."""

import pytest

from tests.e2e import restoring
from tests.e2e.scenarios import Story
from tests.support.binaries import LOCAL_STORIES

pytestmark = [*LOCAL_STORIES, pytest.mark.timeout(300)]


def test_a_state_damaged_in_any_way_is_restored_and_nothing_is_created_again(site):
    restoring.damaged_states_are_restored(Story(site, "drill", seconds=0), server_stays=False)


def test_a_state_of_several_secrets_is_restored_and_a_held_deletion_goes_on(site):
    restoring.lost_chunk_is_restored(Story(site, "chunks", seconds=0))
