"""The restore drill with real Terraform on the embedded control plane."""

import shutil

import pytest

from tests.e2e import restoring
from tests.e2e.scenarios import Story

pytestmark = [
    pytest.mark.terraform,
    pytest.mark.timeout(300),
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on PATH"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH"),
]


def test_a_state_damaged_in_any_way_is_restored_and_nothing_is_created_again(site):
    restoring.damaged_states_are_restored(Story(site, "drill", seconds=0))


def test_a_state_of_several_secrets_is_restored_and_a_held_deletion_goes_on(site):
    restoring.lost_chunk_is_restored(Story(site, "chunks", seconds=0))
