"""A state the runtime could not store is pushed again, or kept
(runner.md: A state that could not be stored)."""

import base64
import datetime
import errno
import gzip
import json
import os
import random
import time
from pathlib import Path

import pytest

from runner import kept, rescue, wire
from runner.events import Events
from runner.keeper import Keeper
from runner.result import Result
from tests.runner.events_server import EventsServer
from tests.runner.harness import Job, wait_until

STATE = {
    "version": 4,
    "serial": 7,
    "lineage": "0e6b5b9c-lineage",
    "outputs": {},
    "resources": [{"mode": "managed"}, {"mode": "data"}, {"mode": "managed"}],
}
REFUSED = 'Failed to load destination state: Get "https://x": dial tcp: connection refused\n'
BACKEND = (
    "--backend-config=secret_suffix=0123-c",
    "--backend-config=namespace=ns",
    '--backend-config=labels={"a"="b","captf.io/managed"="true"}',
    "--event-object=infrastructure.cluster.x-k8s.io/v1alpha1/TerraformCluster/ns/n/uid-1",
    "--job-name=the-job",
)


class Quiet:
    """A log that nobody reads."""

    def info(self, *_: object, **__: object) -> None:
        pass


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(rescue, "_FIRST_PAUSE", 0.001)


@pytest.fixture
def server(tmp_path: Path):
    found = EventsServer(tmp_path, tmp_path / "account")
    yield found
    found.close()


def _leaves_state(job: Job, then: str = "exit 1", state: object = STATE) -> str:
    text = json.dumps(state)
    return f"cat > {job.root}/errored.tfstate <<'END'\n{text}\nEND\n{then}"


def _fails_at_first(job: Job, times: int, said: str = REFUSED) -> str:
    """A push that fails so often before it succeeds."""
    tries = job.marker("tries")
    return (
        f"echo >> {tries}\n"
        f"if [ $(wc -l < {tries}) -le {times} ]; then cat >&2 <<'END'\n{said}END\nexit 1\nfi\n"
    )


def _pushes(outcome) -> list[list[str]]:
    return [call.arguments for call in outcome.calls if call.name == "state-push"]


@pytest.mark.parametrize("op", ["apply", "destroy"])
def test_a_failed_change_that_left_its_state_is_followed_by_a_push(job: Job, op):
    job.play(op, script=_leaves_state(job))
    outcome = job.run(f"--op={op}", "--lock-timeout=7s")
    assert outcome.exit == 1
    file = f"{job.root}/errored.tfstate"
    assert outcome.calls[-1].arguments == ["state", "push", "-lock-timeout=7s", file]
    assert outcome.steps[-2:] == [op, "state-push"]
    assert outcome.document["steps"][-1]["exit"] == 0
    assert (outcome.error["kind"], outcome.error["step"]) == ("step", op)
    assert "unsaved" not in outcome.document


def test_a_state_that_is_stored_is_not_taken_for_an_unsaved_one_afterwards(job: Job):
    job.play("apply", script=_leaves_state(job))
    job.run("--op=apply")
    assert not (job.root / "errored.tfstate").exists()


@pytest.mark.parametrize(
    "said",
    [
        REFUSED,
        "Failed to load destination state: Get: net/http: TLS handshake timeout\n",
        "Failed to write state: etcdserver: request timed out\n",
        "Failed to write state: write .terraform: no space left on device\n",
    ],
)
def test_a_push_is_tried_again_until_the_server_is_back(job: Job, said):
    job.play("apply", script=_leaves_state(job))
    job.play("state-push", script=_fails_at_first(job, 9, said))
    outcome = job.run("--op=apply")
    assert len(_pushes(outcome)) == 10
    assert outcome.steps[-2:] == ["apply", "state-push"]
    assert outcome.document["steps"][-1]["exit"] == 0
    assert "unsaved" not in outcome.document
    assert outcome.error["step"] == "apply"


def test_only_the_first_push_waits_for_the_lock(job: Job):
    """Afterwards the runner waits itself, and finds out who holds it."""
    job.play("apply", script=_leaves_state(job))
    job.play("state-push", script=_fails_at_first(job, 2))
    outcome = job.run("--op=apply", "--lock-timeout=9s")
    waits = [arguments[2] for arguments in _pushes(outcome)]
    assert waits == ["-lock-timeout=9s", "-lock-timeout=0s", "-lock-timeout=0s"]


def _locked(host: str, created: str) -> str:
    """What Terraform 1.11 prints, box and colours included."""
    lines = [
        "Error: Error acquiring the state lock",
        "",
        "Error message: the state is already locked by another terraform client",
        "Lock Info:",
        "  ID:        55b5398c-e803-aabe-7ec2-afa2ddc71e62",
        "  Path:      ",
        "  Operation: OperationTypeApply",
        f"  Who:       root@{host}",
        "  Version:   1.11.4",
        f"  Created:   {created}.56819891 +0000 UTC",
    ]
    return "".join(f"\x1b[31m│\x1b[0m {line}\n" for line in lines)


UNLOCK = ["force-unlock", "-force", "55b5398c-e803-aabe-7ec2-afa2ddc71e62"]


def _unlocks(outcome) -> list[list[str]]:
    return [call.arguments for call in outcome.calls if call.name == "force-unlock"]


def test_the_lock_that_the_failed_step_could_not_release_is_taken_off(job: Job):
    diagnostic = {"severity": "error", "summary": "Error releasing the state lock"}
    shown = json.dumps({"type": "diagnostic", "@message": "x", "diagnostic": diagnostic})
    job.play("apply", shown + "\n", script=_takes_lock(job) + _leaves_state(job))
    job.play("state-push", script=_locked_since_then(job, 1))
    outcome = job.run("--op=apply")
    assert _unlocks(outcome) == [UNLOCK]
    assert [arguments[2] for arguments in _pushes(outcome)] == ["-lock-timeout=0s"] * 2
    assert outcome.document["steps"][-1] == {**outcome.document["steps"][-1], "exit": 0}


LATER = 60


@pytest.fixture
def slow_news(monkeypatch):
    """What happens after a step has failed takes a minute, as where the server does not answer."""
    wall, monotonic, passed = time.time, time.monotonic, [0.0, 0.0]
    monkeypatch.setattr(time, "time", lambda: wall() + passed[0])
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + passed[1])

    def emit(self, reason: str, *_: str) -> None:
        if reason == "StepFailed":
            passed[:] = LATER, LATER

    monkeypatch.setattr(Events, "emit", emit)
    return passed


def _takes_lock(job: Job, later: int = 0) -> str:
    """For `_locked_since_then`: notes the time."""
    return f"date -u -d '+{later} seconds' '+%Y-%m-%d %H:%M:%S' > {job.marker('taken')}\n"


def _locked_since_then(job: Job, times: int) -> str:
    said = f"sed \"s/NOW/$(cat {job.marker('taken')})/\" >&2 <<'END'"
    script = _fails_at_first(job, times, _locked(os.uname().nodename, "NOW"))
    return script.replace("cat >&2 <<'END'", said)


def test_the_own_lock_is_known_however_long_it_took_to_tell_of_the_failure(job: Job, slow_news):
    job.play("apply", script=_takes_lock(job) + _leaves_state(job))
    job.play("state-push", script=_locked_since_then(job, 1))
    outcome = job.run("--op=apply")
    assert _unlocks(outcome) == [UNLOCK]
    assert len(_pushes(outcome)) == 2


def test_the_lock_of_a_push_that_was_ended_is_taken_off(job: Job, slow_news, monkeypatch):
    push = rescue.Rescue._push

    def later(self, *arguments):
        slow_news[:] = 2 * LATER, 2 * LATER
        return push(self, *arguments)

    monkeypatch.setattr(rescue.Rescue, "_push", later)
    ended = job.marker("ended")
    takes = _takes_lock(job, 2 * LATER)
    cut_off = f"test -e {ended} || {{ : > {ended}; {takes} echo EOF >&2; exit 1; }}\n"
    job.play("apply", script=_leaves_state(job))
    job.play("state-push", script=cut_off + _locked_since_then(job, 1))
    outcome = job.run("--op=apply", "--stop-timeout=600s")
    assert _unlocks(outcome) == [UNLOCK]
    assert len(_pushes(outcome)) == 3
    assert "unsaved" not in outcome.document


@pytest.mark.parametrize(
    ("host", "age"),
    [("another-host", 0), ("", 3600)],
    ids=["of another host", "older than the step"],
)
def test_a_lock_of_somebody_else_is_waited_for(job: Job, host, age):
    created = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=age)
    job.play("apply", script=_leaves_state(job))
    said = _locked(host or os.uname().nodename, f"{created:%Y-%m-%d %H:%M:%S}")
    job.play("state-push", script=_fails_at_first(job, 4, said))
    outcome = job.run("--op=apply")
    assert _unlocks(outcome) == []
    assert len(_pushes(outcome)) == 5
    assert "unsaved" not in outcome.document


def test_a_refused_push_leaves_the_error_as_it_is_and_tells_of_the_state(job: Job):
    job.play("apply", err="Error: Failed to save state\n", script=_leaves_state(job))
    job.play("state-push", err="Error: Push refused\n", exit=5)
    outcome = job.run("--op=apply")
    assert outcome.exit == 1
    assert outcome.document["steps"][-1]["exit"] == 5
    assert outcome.error["step"] == "apply"
    assert outcome.error["tail"] == "Error: Failed to save state"
    lineage = STATE["lineage"]
    told = {"serial": 7, "lineage": lineage, "resources": 2, "secrets": 0}
    assert outcome.document["unsaved"] == told
    assert len(_pushes(outcome)) == 3
    assert wire.decode(json.dumps(outcome.document)).unsaved == wire.Unsaved(7, lineage, 2)


def test_a_state_that_is_not_stored_is_kept_in_secrets(job: Job, server: EventsServer):
    big = {**STATE, "noise": random.Random(1).randbytes(1_400_000).hex()}
    job.play("apply", script=_leaves_state(job, state=big))
    job.play("state-push", err="Error: Push refused\n", exit=1)
    outcome = job.run("--op=apply", *BACKEND, environ={**job.environ, **server.environ})
    names = ["captf-unsaved-0123-c-part-1", "captf-unsaved-0123-c"]
    assert list(server.secrets) == names, "the base comes last: it tells that all is there"
    packed = b"".join(
        base64.b64decode(server.secrets[name]["data"]["tfstate"]) for name in reversed(names)
    )
    assert json.loads(gzip.decompress(packed)) == big
    meta = server.secrets[names[1]]["metadata"]
    assert meta["namespace"] == "ns"
    assert meta["labels"] == {
        "a": "b",
        "captf.io/managed": "true",
        "captf.io/unsaved-state": "0123-c",
    }
    assert meta["annotations"]["captf.io/job"] == "the-job"
    assert meta["annotations"]["captf.io/unsaved-parts"] == "2"
    assert meta["ownerReferences"][0]["uid"] == "uid-1"
    assert outcome.document["unsaved"]["secrets"] == 2
    (failed,) = [event for event in server.events if event["action"] == "state-push"]
    assert "not saved, but is kept in 2 Secrets" in failed["note"]


def test_secrets_that_kept_a_state_go_when_it_is_stored(job: Job, server: EventsServer):
    job.play("apply", script=_leaves_state(job))
    job.play("state-push", script=_fails_at_first(job, 5))
    outcome = job.run("--op=apply", *BACKEND, environ={**job.environ, **server.environ})
    assert "unsaved" not in outcome.document
    assert server.secrets == {}
    kept_meanwhile = [r for r in server.requests if "/secrets" in r.path]
    assert [request.method for request in kept_meanwhile] == ["POST", "DELETE"]


def test_a_kept_state_of_an_earlier_run_is_replaced():
    """Its run has stored that one first."""
    requests = []

    class Taken:
        def request(self, method, path, body=b"", *, seconds=0.0):
            requests.append((method, path))
            return 409 if method == "POST" else 200

    keeper = Keeper(Quiet(), kept.Place.of_arguments(BACKEND), Taken())
    keeper.keep(json.dumps(STATE).encode())
    path = "/api/v1/namespaces/ns/secrets"
    assert requests == [("POST", path), ("PUT", f"{path}/captf-unsaved-0123-c")]
    assert keeper.secrets == 1


def test_without_such_a_state_nothing_is_pushed(job: Job):
    job.play("apply", exit=1)
    outcome = job.run("--op=apply")
    assert outcome.steps[-1] == "apply"


def test_a_state_left_by_a_successful_apply_is_not_pushed(job: Job):
    job.play("apply", script=_leaves_state(job, "exit 0"))
    assert job.run("--op=apply").steps[-1] == "apply"


def test_a_failed_refresh_pushes_nothing(job: Job):
    job.play("apply-refresh-only", script=_leaves_state(job))
    assert job.run("--op=refresh").steps == ["init", "apply-refresh-only"]


def test_the_push_runs_after_an_interruption_too(job: Job):
    there = job.marker("there")
    waiting = f": > {there}; while :; do sleep 0.02; done"
    left = job.marker("left")
    left.write_text(json.dumps(STATE))
    trap = f"cp {left} {job.root}/errored.tfstate; exit 1"
    job.play("apply", script=f"trap '{trap}' TERM; {waiting}")
    started = job.start("--op=apply")
    wait_until(there.exists, "the apply")
    started.signal()
    outcome = started.end()
    assert (outcome.error["kind"], outcome.error["step"]) == ("interrupted", "apply")
    assert outcome.steps[-1] == "state-push"
    assert outcome.document["steps"][-1]["exit"] == 0


def test_a_run_told_to_stop_while_it_tries_again_ends_within_its_stop_timeout(
    job: Job, server: EventsServer
):
    """In a pod it would otherwise go on for as long as the server is away."""
    tried = job.marker("tried")
    job.play("apply", script=_leaves_state(job))
    job.play("state-push", err=REFUSED, exit=1, script=f": > {tried}")
    environ = {**job.environ, **server.environ}
    started = job.start("--op=apply", "--stop-timeout=1s", *BACKEND[:2], environ=environ)
    wait_until(tried.exists, "a push")
    started.signal()
    outcome = started.end()
    assert outcome.steps[-1] == "state-push"
    assert outcome.document["unsaved"]["serial"] == 7
    assert json.loads((job.root / "errored.tfstate").read_text()) == STATE


def test_a_push_that_does_not_end_is_stopped(job: Job):
    job.play("apply", script=_leaves_state(job))
    job.play("state-push", script="trap '' TERM; while :; do sleep 0.02; done")
    outcome = job.start("--op=apply", "--stop-timeout=200ms").end()
    assert outcome.document["steps"][-1] == {
        "name": "state-push",
        "exit": 1,
        "seconds": outcome.document["steps"][-1]["seconds"],
    }
    assert outcome.document["steps"][-1]["seconds"] < 30


def _printed(state: object) -> str:
    """What Terraform prints when it can write no file: hclog sorts its members."""
    message = {
        "@level": "info",
        "@message": "Emergency state dump",
        "@module": "terraform.ui",
        "@timestamp": "2026-11-30T12:00:05.487036Z",
        "state": state,
        "type": "log",
    }
    return json.dumps(message, separators=(",", ":")) + "\n"


@pytest.mark.parametrize("size", [0, 1_500_000], ids=["small", "over the longest line"])
def test_a_state_that_was_only_printed_is_pushed(job: Job, size):
    """The disk was full: the runtime left an empty file and printed the state."""
    state = {**STATE, "outputs": {"o": {"value": "canary-" + "x" * size}}}
    pushed = job.marker("pushed")
    job.play("apply", _printed(state), script=f": > {job.root}/errored.tfstate; exit 1")
    job.play("state-push", script=f"cp {job.root}/errored.tfstate {pushed}")
    outcome = job.run("--op=apply")
    assert outcome.steps[-1] == "state-push"
    assert json.loads(pushed.read_text()) == state
    assert "canary" not in outcome.everything


def test_a_printed_state_is_pushed_without_a_file_while_the_disk_is_full(job: Job):
    pushed, full = job.marker("pushed"), job.root / "errored.tfstate.new"
    script = f": > {job.root}/errored.tfstate; mkdir {full}; exit 1"
    job.play("apply", _printed(STATE), script=script)
    job.play("state-push", script=f"cat > {pushed}")
    outcome = job.run("--op=apply")
    assert _pushes(outcome)[-1][-1] == "-"
    assert json.loads(pushed.read_text()) == STATE
    assert outcome.document["steps"][-1]["exit"] == 0


def test_a_full_disk_does_not_keep_the_result_from_being_written(job: Job, monkeypatch):
    """The copies of providers, which can be large, make room."""
    provider = job.workdir / ".terraform" / "providers" / "provider"
    job.play("apply", script=f"mkdir -p {provider.parent}; : > {provider}; exit 1")
    write = Result.write

    def write_where_there_is_room(result: Result, path: str) -> None:
        if provider.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        write(result, path)

    monkeypatch.setattr(Result, "write", write_where_there_is_room)
    outcome = job.run("--op=apply")
    assert outcome.error["step"] == "apply"


def _provide_unsaved(job: Job, state: object = STATE) -> None:
    directory = job.config / wire.UNSAVED_DIRECTORY
    directory.mkdir()
    packed = gzip.compress(json.dumps(state).encode())
    (directory / "0").write_bytes(packed[:20])
    (directory / "1").write_bytes(packed[20:])


@pytest.mark.parametrize("op", [op for op in wire.OPS if op != wire.RESTORE])
def test_a_state_of_an_earlier_run_is_stored_before_anything_else(job: Job, op):
    _provide_unsaved(job)
    pushed = job.marker("pushed")
    job.play("state-push", script=f"cp {job.workdir}/unsaved.tfstate {pushed}")
    job.play("plan", exit=0)
    outcome = job.run(f"--op={op}", "--unsaved-chunks=2", "--force-unlock=x", "--lock-timeout=3s")
    assert outcome.exit == 0
    assert outcome.steps[:3] == ["init", "force-unlock", "state-recover"]
    (push,) = _pushes(outcome)
    assert push == ["state", "push", "-lock-timeout=3s", f"{job.workdir}/unsaved.tfstate"]
    assert json.loads(pushed.read_text()) == STATE
    assert wire.decode(json.dumps(outcome.document)).did_step(wire.STATE_RECOVER)


def test_nothing_is_applied_when_the_state_of_an_earlier_run_is_refused(job: Job):
    _provide_unsaved(job)
    job.play("state-push", err="cannot import state with serial 7 over newer state\n", exit=1)
    outcome = job.run("--op=apply", "--unsaved-chunks=2")
    assert outcome.exit == 1
    assert outcome.error["step"] == "state-recover"
    assert outcome.called == ["init", "state-push"]
    assert "cannot import state" in outcome.error["tail"]


def test_a_restore_replaces_the_unsaved_state(job: Job):
    _provide_unsaved(job)
    backup = job.config / wire.RESTORE_DIRECTORY
    backup.mkdir()
    (backup / "0").write_bytes(gzip.compress(b"{}"))
    outcome = job.run("--op=restore", "--restore-chunks=1", "--unsaved-chunks=2")
    assert outcome.steps == ["init", "state-push", "state-list"]


def test_the_place_of_a_state_is_read_from_a_whole_command_line():
    place = kept.Place.of_arguments(["run", "--op=apply", *BACKEND])
    assert place is not None
    assert (place.namespace, place.suffix, place.job) == ("ns", "0123-c", "the-job")
    assert place.owner is not None and place.owner.uid == "uid-1"
    assert kept.Place.of_arguments(["run", "--op=apply"]) is None
