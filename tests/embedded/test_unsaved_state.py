"""The node agent keeps the state that a dead pod could not store
(local-mode.md: States that were not stored)."""

import gzip
import json
from pathlib import Path

import pytest

from captfctl.cluster.errors import Forbidden, Unavailable
from captfctl.embedded.agent.directory import PodDirectories, PodDirectory, Record
from captfctl.embedded.agent.unsaved_state import keep_unsaved_state
from captfctl.model.resources import SECRETS
from runner import wire
from tests.embedded.support import NAMESPACE, new_store

SUFFIX = "0123456789abcdef-c"
STATE = {"version": 4, "serial": 3, "lineage": "l", "resources": [{"mode": "managed"}]}
ARGUMENTS = [
    "--op=apply",
    f"--backend-config=secret_suffix={SUFFIX}",
    f"--backend-config=namespace={NAMESPACE}",
    '--backend-config=labels={"captf.io/managed"="true"}',
    "--job-name=the-job",
]


@pytest.fixture
def door():
    return new_store().door()


def pod_directory(base: Path, arguments: list[str], left: str | None) -> PodDirectory:
    directory = PodDirectories(base / "pods").of("uid-1")
    directory.make()
    record = Record(
        namespace=NAMESPACE, name="pod", uid="uid-1", started_at=1.0, run_arguments=arguments
    )
    directory.write(record)
    if left is not None:
        file = left_file(directory)
        file.parent.mkdir(parents=True)
        file.write_text(left)
    return directory


def left_file(directory: PodDirectory) -> Path:
    return directory.inside(wire.WORK) / wire.ERRORED_STATE


def kept_state(door) -> dict[str, object]:
    secret = door.get(SECRETS, wire.kept_secret(SUFFIX), NAMESPACE)
    return json.loads(gzip.decompress(secret.data[wire.KEPT_KEY]))


def test_what_a_dead_runner_left_goes_into_secrets_and_then_away(door, tmp_path):
    directory = pod_directory(tmp_path, ARGUMENTS, json.dumps(STATE))
    assert keep_unsaved_state(door, directory)
    assert kept_state(door) == STATE
    assert not left_file(directory).exists()


def test_what_an_earlier_run_kept_is_replaced(door, tmp_path):
    for serial in (3, 4):
        state = json.dumps({**STATE, "serial": serial})
        directory = pod_directory(tmp_path / str(serial), ARGUMENTS, state)
        assert keep_unsaved_state(door, directory)
    assert kept_state(door)["serial"] == 4


class Away:
    """A door that answers every write with one error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def create(self, *_: object) -> object:
        raise self._error


def test_it_stays_on_the_node_while_the_server_is_away(tmp_path):
    directory = pod_directory(tmp_path, ARGUMENTS, json.dumps(STATE))
    assert not keep_unsaved_state(Away(Unavailable("away")), directory)
    assert json.loads(left_file(directory).read_text()) == STATE


def test_it_stays_on_the_node_for_good_where_the_server_takes_no_secret(tmp_path):
    """The pod's directory goes afterwards."""
    directory = pod_directory(tmp_path, ARGUMENTS, json.dumps(STATE))
    assert keep_unsaved_state(Away(Forbidden("no")), directory)
    directory.remove()
    (file,) = (tmp_path / "unsaved-states").iterdir()
    assert file.name == f"{NAMESPACE}.the-job.tfstate"
    assert json.loads(file.read_text()) == STATE
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        pytest.param(ARGUMENTS, None, id="nothing left"),
        pytest.param(ARGUMENTS, '{"version": 4, "ser', id="no whole state"),
        pytest.param(["--op=refresh", *ARGUMENTS[1:]], json.dumps(STATE), id="a refresh"),
        pytest.param([], json.dumps(STATE), id="no runner"),
    ],
)
def test_nothing_else_is_kept(door, tmp_path, arguments, left):
    directory = pod_directory(tmp_path, arguments, left)
    assert keep_unsaved_state(door, directory)
    assert door.list(SECRETS, NAMESPACE).items == []
