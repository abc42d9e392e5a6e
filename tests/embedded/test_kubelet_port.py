"""What kube-apiserver asks a node for when somebody wants a log."""

import ssl
import urllib.error
import urllib.request
from datetime import UTC, datetime

import pytest

from captfctl.cluster.errors import NotFound
from captfctl.embedded.agent.kubelet_port import kubelet_port


class Log:
    def __iter__(self):
        yield b"first\n"
        yield b"second\n"

    def close(self):
        pass


@pytest.fixture
def node(tmp_path):
    """Answers `(status, text)` for a path of the node's port; `asked` is what it wanted to open."""
    asked = []

    def open_log(namespace, pod, container, **options):
        asked.append((namespace, pod, container, options))
        if pod == "gone":
            raise NotFound("there is no such pod")
        return Log()

    now = datetime.now(UTC)
    server = kubelet_port(0, open_log, tmp_path, now)
    server.start()
    trusted = ssl.create_default_context(cafile=tmp_path / "ca.crt")

    def get(path):
        try:
            with urllib.request.urlopen(
                f"https://127.0.0.1:{server.port}{path}", context=trusted, timeout=10
            ) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as problem:
            with problem:
                return problem.code, problem.read().decode()

    get.asked = asked
    yield get
    server.stop()


def test_a_log_is_served_with_its_options(node):
    path = "/containerLogs/ns/pod-1/main?follow=true&tailLines=5&timestamps=1"
    assert node(path) == (200, "first\nsecond\n")
    options = {"follow": True, "tail_lines": 5, "timestamps": True}
    assert node.asked == [("ns", "pod-1", "main", options)]


def test_a_pod_that_is_not_there_is_not_found(node):
    status, text = node("/containerLogs/ns/gone/main")
    assert (status, text) == (404, "there is no such pod\n")


def test_an_option_that_is_no_number_is_a_bad_request(node):
    assert node("/containerLogs/ns/pod-1/main?tailLines=all")[0] == 400


@pytest.mark.parametrize("path", ["/", "/pods", "/containerLogs/ns/pod", "/exec/ns/pod/main"])
def test_nothing_else_is_served(node, path):
    assert node(path)[0] == 404
    assert node.asked == []
