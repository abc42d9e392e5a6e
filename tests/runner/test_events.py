"""Progress events: their order, their content, and that they never matter to the run
(runner.md: Progress events)."""

import json
import re
import socket
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import api
from runner.events import Events, ObjectReference
from runner.log import Log
from runner.options import LogOptions
from runner.sinks import Sink
from runner.wire import EMPTY_PLAN
from tests.runner.events_server import BEHIND_PROXY, EventsServer
from tests.runner.harness import Job, Outcome, plan_json, wait_until

OBJECT = "infrastructure.cluster.x-k8s.io/v1alpha1/TerraformMachine/ns/machine-1/uid-1"


@pytest.fixture
def server(tmp_path):
    server = EventsServer(tmp_path, tmp_path / "account")
    yield server
    server.close()


def _run(job: Job, server: EventsServer, *flags: str) -> Outcome:
    environ = {**job.environ, **server.environ}
    return job.run(f"--event-object={OBJECT}", "--job-name=job-1", *flags, environ=environ)


def _step(name: str) -> list[str]:
    return [f"StepStarted {name}", f"StepSucceeded {name}"]


def _order(server: EventsServer) -> list[str]:
    return [f"{event['reason']} {event['action']}" for event in server.events]


COUNTED = '{"@message":"Apply complete! Resources: 1 added, 2 changed, 3 destroyed."}\n'


def test_an_apply_posts_its_steps_and_what_changed(job: Job, server):
    job.play("apply", COUNTED)
    assert _run(job, server, "--op=apply", "--image=r/i:v1").exit == 0
    assert _order(server) == [
        "RunStarted apply",
        *_step("init"),
        *_step("validate"),
        *_step("apply"),
        "ResourcesChanged apply",
        "RunFinished apply",
    ]
    notes = {event["reason"]: event["note"] for event in server.events}
    assert "r/i:v1" in notes["RunStarted"] and "1.9.9" in notes["RunStarted"]
    assert notes["ResourcesChanged"] == "1 added, 2 changed, 3 destroyed, 0 imported"
    assert {event["type"] for event in server.events} == {"Normal"}


def test_an_event_says_who_what_and_about_which_object(job: Job, server):
    _run(job, server, "--op=refresh")
    request = server.requests[0]
    assert request.path == "/apis/events.k8s.io/v1/namespaces/ns/events"
    assert request.token == "Bearer token-one"
    event = dict(request.event)
    name = event["metadata"]["name"]
    assert re.fullmatch(r"machine-1\.[0-9a-f]+", name)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["eventTime"])
    assert event["reportingInstance"]
    for member in ("eventTime", "reportingInstance", "note"):
        del event[member]
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "ns", "name": name},
        "reportingController": "captf.io/runner",
        "action": "refresh",
        "reason": "RunStarted",
        "type": "Normal",
        "regarding": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
            "kind": "TerraformMachine",
            "namespace": "ns",
            "name": "machine-1",
            "uid": "uid-1",
        },
        "related": {"apiVersion": "batch/v1", "kind": "Job", "namespace": "ns", "name": "job-1"},
    }


def test_an_unknown_runtime_version_is_told_as_unknown(job: Job, server):
    job.play("version", "junk")
    _run(job, server, "--op=refresh")
    assert "unknown" in server.events[0]["note"]


def test_without_a_job_name_nothing_is_related(job: Job, server):
    environ = {**job.environ, **server.environ}
    job.run(f"--event-object={OBJECT}", "--op=refresh", environ=environ)
    assert "related" not in server.events[0]


def test_a_guarded_apply_without_changes_ends_after_its_plan(job: Job, server):
    _run(job, server, "--op=apply", "--guard-deletes")
    assert _order(server)[-4:] == [*_step("plan"), "PlanSummary plan", "RunFinished apply"]


def test_a_blocked_apply_tells_the_plan_and_warns_at_the_end(job: Job, server):
    job.play("plan", exit=2)
    job.play("show", plan_json(("a.b", ["delete"])))
    _run(job, server, "--op=apply", "--guard-deletes")
    assert _order(server)[-3:] == [
        "StepSucceeded show-json",
        "PlanSummary show-json",
        "RunFinished apply",
    ]
    assert "StepFailed" not in server.reasons
    assert server.events[-1]["type"] == "Warning"
    assert "blocked" in server.events[-1]["note"]
    summary = server.events[-2]["note"]
    assert "1 to delete" in summary and "a.b" not in summary


def test_a_plan_tells_every_count(job: Job, server):
    job.play("plan", exit=2)
    job.play("show", plan_json(("a.b", ["forget"]), outputs={"o": ["create"]}))
    _run(job, server, "--op=plan")
    note = next(event["note"] for event in server.events if event["reason"] == "PlanSummary")
    assert "1 to forget" in note and "1 outputs changed" in note


def test_a_changed_plan_says_so_at_the_end(job: Job, server):
    _run(job, server, "--op=apply", "--expect-plan=p2:other")
    assert "differs from the approved" in server.events[-1]["note"]
    assert EMPTY_PLAN not in server.events[-1]["note"]


def test_a_failing_step_warns_with_its_summary(job: Job, server):
    job.play("validate", '{"diagnostics":[{"severity":"error","summary":"Broken"}]}', exit=1)
    _run(job, server, "--op=apply")
    assert _order(server)[-3:] == [
        "StepStarted validate",
        "StepFailed validate",
        "RunFinished apply",
    ]
    failed, finished = server.events[-2:]
    assert failed["type"] == finished["type"] == "Warning"
    for fact in ("validate", "1", "Error: Broken"):
        assert fact in failed["note"]
    assert "validate" in finished["note"]


def test_a_plan_that_cannot_be_read_is_a_failed_step(job: Job, server):
    job.play("plan", exit=2)
    job.play("show", "not json")
    _run(job, server, "--op=drift")
    assert _order(server)[-3:] == [
        "StepStarted show-json",
        "StepFailed show-json",
        "RunFinished drift",
    ]


def test_an_errored_state_that_cannot_be_pushed_is_told(job: Job, server):
    job.play("apply", script=f"echo x > {job.root}/errored.tfstate; exit 1")
    job.play("state-push", exit=1)
    _run(job, server, "--op=apply")
    assert _order(server)[-3:] == ["StepFailed apply", "StepFailed state-push", "RunFinished apply"]
    assert "not saved" in server.events[-2]["note"]


def test_an_image_that_breaks_the_contract_posts_the_end_only(job: Job, server):
    _run(job, server, "--op=apply", "--module=/nonexistent")
    assert _order(server) == ["RunFinished apply"]
    assert "contract" in server.events[0]["note"]
    assert server.events[0]["type"] == "Warning"


def test_bad_flags_post_nothing(job: Job, server):
    assert _run(job, server, "--op=bogus").exit == 2
    assert server.requests == []


def test_an_interrupted_run_still_posts_its_end(job: Job, server):
    there = job.marker("there")
    job.play("init", script=f"trap 'exit 1' TERM; : > {there}; while :; do sleep 0.02; done")
    environ = {**job.environ, **server.environ}
    started = job.start(f"--event-object={OBJECT}", "--op=refresh", environ=environ)
    wait_until(there.exists, "the step")
    started.signal()
    assert started.end().error["kind"] == "interrupted"
    assert server.reasons[-1] == "RunFinished"
    assert "interrupted" in server.events[-1]["note"]


def test_three_refusals_end_the_events_and_change_nothing_else(job: Job, server):
    server.statuses = [403]
    outcome = _run(job, server, "--op=apply")
    assert outcome.exit == 0
    assert len(server.requests) == 3
    assert outcome.err.count("could not be posted") == 1
    assert outcome.err.count("given up") == 1
    assert "403" in outcome.err


def test_a_success_between_failures_keeps_the_events_going(job: Job, server):
    server.statuses = [500, 201] * 20
    outcome = _run(job, server, "--op=apply")
    assert server.reasons[-1] == "RunFinished"
    assert outcome.err.count("could not be posted") == 1
    assert "given up" not in outcome.err


def test_a_server_that_does_not_answer_costs_two_seconds_an_event(job: Job, server):
    released = threading.Event()
    server.before_answer = lambda: released.wait(30)
    started = time.monotonic()
    outcome = _run(job, server, "--op=refresh")
    released.set()
    assert outcome.exit == 0
    assert 5 < time.monotonic() - started < 20
    assert len(server.requests) == 3


def test_a_server_that_answers_by_drops_costs_no_more(job: Job):
    """A socket that accepts and sends one byte now and then."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = job.path / "account"
    server.mkdir()
    stop = threading.Event()

    def drip() -> None:
        listener.settimeout(0.05)
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                while not stop.wait(0.05):
                    try:
                        connection.sendall(b"x")
                    except OSError:
                        break

    other = EventsServer(job.path, job.path / "other")
    other.close()
    (server / "ca.crt").write_bytes((other.account / "ca.crt").read_bytes())
    (server / "token").write_text("t")
    thread = threading.Thread(target=drip)
    thread.start()
    environ = {
        **job.environ,
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(listener.getsockname()[1]),
        "CAPTF_SERVICE_ACCOUNT_DIR": str(server),
    }
    started = time.monotonic()
    outcome = job.run(f"--event-object={OBJECT}", "--op=refresh", environ=environ)
    stop.set()
    thread.join()
    listener.close()
    assert outcome.exit == 0
    assert time.monotonic() - started < 20


def test_one_connection_serves_a_run(job: Job, server):
    _run(job, server, "--op=apply")
    assert len(server.requests) > 5
    assert server.connections == 1


def test_a_connection_closed_meanwhile_is_replaced(job: Job, server):
    server.hang_up = True
    outcome = _run(job, server, "--op=apply")
    assert server.reasons[0] == "RunStarted" and server.reasons[-1] == "RunFinished"
    assert len(server.requests) == server.connections == 8
    assert "could not be posted" not in outcome.err


class Proxy:
    """Tunnels every connection to one server, whatever its address."""

    def __init__(self, port: int) -> None:
        self.heads: list[str] = []
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096)
        self.heads.append(head.decode())
        server = socket.create_connection(("127.0.0.1", self._port))
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        back = threading.Thread(target=self._pump, args=(server, client))
        back.start()
        self._pump(client, server)
        back.join()
        client.close()
        server.close()

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_events_go_through_the_proxy_that_the_environment_names(job: Job, server):
    proxy = Proxy(int(server.environ["KUBERNETES_SERVICE_PORT"]))
    environ = {
        **job.environ,
        **server.environ,
        "KUBERNETES_SERVICE_HOST": BEHIND_PROXY,
        "HTTPS_PROXY": f"http://user:pass%40word@127.0.0.1:{proxy.port}",
        "NO_PROXY": "example.com,192.0.3.0/24",
    }
    outcome = job.run(f"--event-object={OBJECT}", "--op=refresh", environ=environ)
    proxy.close()
    assert server.reasons[-1] == "RunFinished", outcome.err
    assert proxy.heads[0].startswith(f"CONNECT {BEHIND_PROXY}:")
    assert "Proxy-Authorization: Basic dXNlcjpwYXNzQHdvcmQ=" in proxy.heads[0]
    assert "token-one" not in proxy.heads[0]


@pytest.mark.parametrize(
    ("host", "exceptions", "proxied"),
    [
        ("10.0.0.1", "", True),
        ("10.0.0.1", "10.0.0.0/8", False),
        ("10.0.0.1", "10.0.0.1", False),
        ("10.0.0.1", "10.0.0.2, fd00::/8, nonsense/99", True),
        ("fd00::1", "fd00::/8", False),
        ("fd00::1", "[fd00::1]", False),
        ("kubernetes.default.svc", ".svc", False),
        ("kubernetes.default.svc", "default.svc", False),
        ("kubernetes.default.svc", "efault.svc", True),
        ("Kubernetes.Default.Svc", "*.svc", False),
        ("10.0.0.1", "*", False),
        ("127.0.0.1", "", False),
        ("localhost", "", False),
        ("::1", "", False),
    ],
)
def test_hosts_on_the_list_of_exceptions_are_reached_directly(host, exceptions, proxied):
    environ = {"https_proxy": "proxy.example:3128", "no_proxy": exceptions}
    assert (api.proxy(host, environ) == ("proxy.example", 3128, "")) is proxied


@pytest.mark.parametrize("address", ["https://p:1", "socks5://p:1", "http://:9", "http://p:port"])
def test_a_proxy_that_cannot_be_used_means_no_events_and_its_address_is_not_shown(
    job: Job, server, address
):
    environ = {**job.environ, **server.environ, "HTTPS_PROXY": address}
    environ["KUBERNETES_SERVICE_HOST"] = BEHIND_PROXY
    outcome = job.run(f"--event-object={OBJECT}", "--op=refresh", environ=environ)
    assert outcome.exit == 0
    assert "No progress events" in outcome.err
    assert address not in outcome.err


def test_a_rotated_token_is_used_for_the_next_event(job: Job, server):
    token = server.account / "token"
    job.play("init", script=f"echo token-two > {token}")
    _run(job, server, "--op=refresh")
    tokens = [request.token for request in server.requests]
    assert tokens[:2] == ["Bearer token-one"] * 2
    assert set(tokens[2:]) == {"Bearer token-two"}


def test_an_empty_token_sends_no_header(job: Job, server):
    (server.account / "token").write_text("\n")
    _run(job, server, "--op=refresh")
    assert server.requests[0].token == ""


def test_an_unreadable_token_fails_the_event(job: Job, server):
    (server.account / "token").unlink()
    outcome = _run(job, server, "--op=refresh")
    assert outcome.exit == 0
    assert server.requests == []
    assert "could not be posted" in outcome.err


@pytest.mark.parametrize("case", ["no host", "no port", "bad port", "no certificate", "empty file"])
def test_surroundings_without_an_api_server_mean_no_events_and_one_line(job: Job, server, case):
    environ = {**job.environ, **server.environ}
    if case == "no host":
        del environ["KUBERNETES_SERVICE_HOST"]
    elif case == "no port":
        del environ["KUBERNETES_SERVICE_PORT"]
    elif case == "bad port":
        environ["KUBERNETES_SERVICE_PORT"] = "https"
    elif case == "no certificate":
        (server.account / "ca.crt").unlink()
    else:
        (server.account / "ca.crt").write_text("")
    outcome = job.run(f"--event-object={OBJECT}", "--op=refresh", environ=environ)
    assert outcome.exit == 0
    assert outcome.err.count("No progress events") == 1
    assert server.requests == []


def test_without_an_object_nothing_is_posted_or_said(job: Job, server):
    outcome = job.run("--op=refresh", environ={**job.environ, **server.environ})
    assert server.requests == []
    assert "events" not in outcome.err


@pytest.mark.parametrize("reference", ["v1/Kind/ns", "v1/Kind/ns//uid", "/Kind/ns/n/uid", "x"])
def test_a_reference_that_names_no_object_means_no_events_and_one_line(job: Job, server, reference):
    environ = {**job.environ, **server.environ}
    outcome = job.run(f"--event-object={reference}", "--op=refresh", environ=environ)
    assert outcome.exit == 0
    assert server.requests == []
    assert outcome.err.count("No progress events") == 1


def test_a_server_of_another_authority_is_not_trusted(job: Job, server, tmp_path):
    other = EventsServer(tmp_path / "module", tmp_path / "other")
    other.close()
    (server.account / "ca.crt").write_bytes((other.account / "ca.crt").read_bytes())
    outcome = _run(job, server, "--op=refresh")
    assert outcome.exit == 0
    assert server.requests == []


def test_references_are_read_from_their_end():
    assert ObjectReference.parse(OBJECT) == ObjectReference(
        "infrastructure.cluster.x-k8s.io/v1alpha1", "TerraformMachine", "ns", "machine-1", "uid-1"
    )
    assert ObjectReference.parse("v1/Pod/ns/n/uid").api_version == "v1"


@given(st.text())
def test_no_reference_is_answered_with_anything_but_a_value_error(text):
    try:
        reference = ObjectReference.parse(text)
    except ValueError:
        return
    assert all(reference)
    assert "/".join(reference) == text


class Posted:
    """Events that are only collected."""

    def __init__(self, tmp_path, name: str = "n") -> None:
        self.documents: list[dict] = []
        with (tmp_path / "log").open("wb") as file:
            options = LogOptions("text", 0, (), split=False, buffer_size=0, flush_frequency=1)
            log = Log(options, Sink(file.fileno()), Sink(file.fileno()))
            regarding = ObjectReference("v1", "Pod", "ns", name, "uid")
            self.events = Events(log, regarding, self)

    def post(self, path: str, body: bytes) -> None:
        assert path == "/apis/events.k8s.io/v1/namespaces/ns/events"
        self.documents.append(json.loads(body))

    def close(self) -> None:
        pass


def test_a_long_note_is_cut_between_characters(tmp_path):
    posted = Posted(tmp_path)
    posted.events.emit("R", "Normal", "a", "é" * 1000)
    posted.events.emit("R", "Normal", "a", "é" * 512)
    posted.events.emit("R", "Normal", "a", "")
    assert posted.documents[0]["note"] == posted.documents[1]["note"] == "é" * 512
    assert "note" not in posted.documents[2]


def test_a_long_object_name_still_makes_a_valid_event_name(tmp_path):
    posted = Posted(tmp_path, "a" * 199 + "-b")
    posted.events.emit("R", "Normal", "a", "")
    name = posted.documents[0]["metadata"]["name"]
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name)
    assert len(name) <= 253
    assert name.startswith("a" * 199 + ".")


def test_two_events_never_share_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)
    posted = Posted(tmp_path)
    for _ in range(20):
        posted.events.emit("R", "Normal", "a", "")
    assert len({document["metadata"]["name"] for document in posted.documents}) == 20


def test_notes_are_redacted(job: Job, server):
    server_environ = {**job.environ, **server.environ, "MY_TOKEN": "note-canary"}
    job.play("init", err="Error: note-canary\n", exit=1)
    job.run(f"--event-object={OBJECT}", "--op=refresh", environ=server_environ)
    assert "note-canary" not in json.dumps(server.events)
    assert "(sensitive)" in json.dumps(server.events)
