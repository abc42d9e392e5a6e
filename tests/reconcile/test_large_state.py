"""States near the size that can be read, and over it (state.md: Verdicts on a state)."""

import pytest

from captfctl.model import keys
from captfctl.terraform.state.reader import DECOMPRESSED_MAX
from tests.support.cluster_world import World, variables
from tests.support.fake_runner import OUTPUTS

MIB = 1024 * 1024


def grow(world: World, size: int) -> None:
    """The next apply leaves a state of about that size."""
    world.edit(variables('{"region":"eu-2"}'))
    world.run()
    world.runner.succeed(world.active_job(), outputs={**OUTPUTS, "filler": "x" * size})
    world.run()


@pytest.mark.parametrize(
    ("size", "reason", "warned"),
    [(12 * MIB, "True/StateRead", 0), (13 * MIB, "True/StateLarge", 1)],
)
def test_a_large_state_is_told_before_it_is_too_large(ready: World, size, reason, warned):
    grow(ready, size)
    ready.settle(2)
    assert ready.reason("StateReadable") == reason
    assert ready.events.warnings().count("StateLarge") == warned
    assert ready.reason("Ready") == "True/Ready"


def test_the_warning_has_the_size_and_the_limit(ready: World):
    grow(ready, 13 * MIB)
    message = ready.condition("StateReadable").message
    assert "13 MiB" in message
    assert "16 MiB" in message


def test_a_state_that_is_too_large_holds_a_live_object_and_says_so(ready: World):
    grow(ready, DECOMPRESSED_MAX)
    assert ready.settle(2).requeue_after == 60
    assert ready.reason("StateReadable") == "False/StateTooLarge"
    assert ready.events.warnings().count("StateLarge") == 1
    ready.edit(variables('{"region":"eu-3"}'))
    ready.settle(2)
    assert ready.running() == []


def test_a_state_that_is_too_large_is_destroyed_with_what_was_applied(ready: World):
    grow(ready, DECOMPRESSED_MAX)
    ready.delete()
    ready.settle(2)
    job = ready.active_job()
    assert job.metadata.labels[keys.OP] == "destroy"
    secret = ready.secret(f"captf-run-{job.metadata.name}")
    assert secret is not None
    assert b"eu-2" in secret.data["terraform.tfvars.json"]
    ready.runner.succeed(job)
    ready.settle(2)
    assert ready.gone


def test_a_state_that_shrank_is_read_again(ready: World):
    grow(ready, DECOMPRESSED_MAX)
    (job, *_) = ready.jobs()
    ready.runner.write_state(job, OUTPUTS)
    ready.settle(2)
    assert ready.reason("StateReadable") == "True/StateRead"
