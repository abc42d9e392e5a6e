"""kubectl's questions about the server itself, and logs."""

import time

import pytest

from tests.apiserver.conftest import DEADLINE, job, pod

pytestmark = pytest.mark.kubectl


def test_the_resources_are_listed(kubectl):
    lines = [line.split() for line in kubectl("api-resources").splitlines()]
    assert lines[0] == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    assert ["widgets", "wd", "example.io/v1", "true", "Widget"] in lines
    assert ["leases", "coordination.k8s.io/v1", "true", "Lease"] in lines
    assert ["namespaces", "ns", "v1", "false", "Namespace"] in lines
    names = kubectl("api-resources", "-o", "name", "--verbs=create").split()
    assert "selfsubjectaccessreviews.authorization.k8s.io" in names
    assert "jobs.batch" in names
    assert "gadgets" in kubectl("api-resources", "--api-group=example.io", "-o", "wide")


def test_the_versions_are_listed(kubectl):
    versions = kubectl("api-versions").split()
    assert {"v1", "batch/v1", "example.io/v1", "coordination.k8s.io/v1"} <= set(versions)


def test_both_versions_are_told(kubectl):
    text = kubectl("version")
    assert "Server Version: v1.32.0" in text
    assert "WARNING" not in text


def test_fields_are_explained(kubectl):
    text = kubectl("explain", "widget.spec")
    assert "KIND:       Widget" in text
    assert "What is wanted." in text
    assert "How large it is." in text
    assert "activeDeadlineSeconds" in kubectl("explain", "job.spec")
    assert "labels" in kubectl("explain", "widget.metadata")
    assert "configMapKeyRef" in kubectl("explain", "pod", "--recursive")


def test_permissions_are_answered(kubectl):
    assert kubectl("auth", "can-i", "create", "widgets") == "yes\n"
    assert "*.*" in kubectl("auth", "can-i", "--list")
    assert "local-admin" in kubectl("auth", "whoami")


def test_a_service_accounts_token_speaks_for_it(kubectl, namespace):
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration=1h").strip()
    text = kubectl("auth", "whoami", "--token", token, "--kubeconfig", str(bare(kubectl)))
    assert f"system:serviceaccount:{namespace}:robot" in text
    assert "system:serviceaccounts" in text


def bare(kubectl):
    """A kubeconfig without the owner's token."""
    import json

    config = json.loads((kubectl.home / "config").read_text())
    config["users"][0]["user"] = {}
    path = kubectl.home / "bare"
    path.write_text(json.dumps(config))
    return path


def test_without_the_token_nothing_is_answered(kubectl):
    error = kubectl.fails("get", "pods", "--kubeconfig", str(bare(kubectl)), "--token=wrong")
    assert "You must be logged in to the server" in error


def running(kubectl, namespace, name="p", containers=("main",), **more):
    """A pod that a node runs; its containers' logs can be had."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    document = pod(name, namespace, *containers, nodeName="n")
    document["metadata"] |= more
    kubectl.api.ok("POST", path, document)
    started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    statuses = [
        {
            "name": c,
            "ready": True,
            "restartCount": 0,
            "image": "i",
            "imageID": "",
            "state": started,
        }
        for c in containers
    ]
    kubectl.api.merge(
        f"{path}/{name}/status",
        {"status": {"phase": "Running", "containerStatuses": statuses}},
    )


def test_a_log_is_shown(kubectl, namespace):
    running(kubectl, namespace)
    kubectl.api.logs.lines[namespace, "p", "main"] = [b"one\n", b"two\n", b"three\n"]
    assert kubectl("logs", "p") == "one\ntwo\nthree\n"
    assert kubectl("logs", "p", "--tail=1") == "three\n"
    kubectl("logs", "p", "--since=5m", "--timestamps", "--limit-bytes=100")
    asked = kubectl.api.logs.asked[-1]
    assert asked["since_seconds"] == 300
    assert asked["timestamps"] is True
    assert asked["limit_bytes"] == 100
    assert asked["follow"] is False


def test_a_log_is_followed_until_its_end(kubectl, namespace):
    running(kubectl, namespace)
    lines = kubectl.api.logs.lines[namespace, "p", "main"] = [b"one\n"]
    following = kubectl.start("logs", "-f", "p")
    assert following.stdout.readline() == "one\n"
    lines.append(b"two\n")
    assert following.stdout.readline() == "two\n"
    lines.append(b"END\n")
    assert following.communicate(timeout=30)[0] == "END\n"
    assert following.returncode == 0


def test_a_reader_that_goes_away_closes_the_log(kubectl, namespace):
    running(kubectl, namespace)
    kubectl.api.logs.lines[namespace, "p", "main"] = [b"one\n"]
    following = kubectl.start("logs", "-f", "p")
    assert following.stdout.readline() == "one\n"
    stream = kubectl.api.logs.open_streams[-1]
    following.kill()
    end = time.monotonic() + DEADLINE
    while not stream.closed:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_log_of_a_jobs_pod(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=job("j", namespace))
    labels = kubectl.json("get", "job", "j")["spec"]["template"]["metadata"]["labels"]
    running(kubectl, namespace, "j-abc", labels=labels)
    kubectl.api.logs.lines[namespace, "j-abc", "main"] = [b"from the job\n"]
    assert "from the job" in kubectl("logs", "job/j")


def test_a_container_is_chosen(kubectl, namespace):
    running(kubectl, namespace, containers=("a", "b"))
    kubectl.api.logs.lines[namespace, "p", "b"] = [b"from b\n"]
    assert kubectl("logs", "p", "-c", "b") == "from b\n"
    path = f"/api/v1/namespaces/{namespace}/pods/p/log"
    status, answer = kubectl.api.call("GET", path)
    assert status == 400
    assert "has several containers, name one of: a, b" in answer["message"]
    status, answer = kubectl.api.call("GET", f"{path}?container=x")
    assert status == 400
    assert "container x is not one of pod p: a, b" in answer["message"]


def test_a_previous_log_that_is_not_there_is_refused(kubectl, namespace):
    running(kubectl, namespace)
    assert "no previous run of container main" in kubectl.fails("logs", "p", "--previous")


def test_a_pod_that_waits_has_no_log_yet(kubectl, namespace):
    kubectl.api.ok("POST", f"/api/v1/namespaces/{namespace}/pods", pod("p", namespace))
    error = kubectl.fails("logs", "p")
    assert "BadRequest" in error
    assert "not bound to a node" in error


def test_asking_in_somebody_elses_name_is_refused_and_not_answered_with_yes(kubectl):
    assert kubectl("auth", "can-i", "list", "secrets").strip() == "yes"
    told = kubectl.fails("auth", "can-i", "list", "secrets", "--as=x")
    assert "cannot impersonate" in told
    assert "cannot impersonate" in kubectl.fails("get", "pods", "--as=x", "--as-group=g")
