"""A running API server over a store in memory, and the real kubectl to talk to it."""

import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError

import pytest

from captfctl.clock import SystemClock
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.store import EmbeddedStore

KUBECTL = shutil.which("kubectl")
DEADLINE = 30.0

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.io"},
    "spec": {
        "group": "example.io",
        "scope": "Namespaced",
        "names": {
            "kind": "Widget",
            "listKind": "WidgetList",
            "plural": "widgets",
            "singular": "widget",
            "shortNames": ["wd"],
            "categories": ["gadgets"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {
                        "name": "Cluster",
                        "type": "string",
                        "jsonPath": ".metadata.labels.cluster\\.x-k8s\\.io/cluster-name",
                    },
                    {
                        "name": "Ready",
                        "type": "string",
                        "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
                    },
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Image", "type": "string", "jsonPath": ".spec.image", "priority": 1},
                    {
                        "name": "Age",
                        "type": "date",
                        "jsonPath": ".metadata.creationTimestamp",
                    },
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "A thing to try things with.",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "description": "What is wanted.",
                                "properties": {
                                    "size": {
                                        "type": "integer",
                                        "minimum": 0,
                                        "description": "How large it is.",
                                    },
                                    "image": {"type": "string"},
                                    "color": {"type": "string", "default": "grey"},
                                    "hosts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["ip"],
                                        "items": {
                                            "type": "object",
                                            "required": ["ip"],
                                            "properties": {
                                                "ip": {"type": "string"},
                                                "name": {"type": "string"},
                                            },
                                        },
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "phase": {"type": "string"},
                                    "conditions": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["type"],
                                        "items": {
                                            "type": "object",
                                            "required": ["type", "status"],
                                            "properties": {
                                                "type": {"type": "string"},
                                                "status": {"type": "string"},
                                                "reason": {"type": "string"},
                                                "message": {"type": "string"},
                                                "lastTransitionTime": {
                                                    "type": "string",
                                                    "format": "date-time",
                                                },
                                            },
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


def widget(name: str, namespace: str = "default", *, labels=None, status=None, **spec):
    document = {
        "apiVersion": "example.io/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    if labels:
        document["metadata"]["labels"] = labels
    return document if status is None else {**document, "status": status}


def job(name: str, namespace: str = "default", **spec):
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "registry.example/i:1"}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"spec": pod}, **spec},
    }


def pod(name: str, namespace: str = "default", *containers: str, **spec):
    names = containers or ("main",)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": n, "image": "registry.example/i:1"} for n in names],
            **spec,
        },
    }


class Logs:
    """Logs of pods, written by the test."""

    def __init__(self) -> None:
        self.lines: dict[tuple[str, str, str], list[bytes]] = {}
        self.asked: list[dict] = []
        self.open_streams: list[_Log] = []

    def open(self, namespace, pod, container, **options):
        self.asked.append({"pod": pod, "container": container, **options})
        lines = self.lines.setdefault((namespace, pod, container), [])
        stream = _Log(lines, options)
        self.open_streams.append(stream)
        return stream


class _Log:
    def __init__(self, lines, options):
        self._lines = lines
        self._follow = options["follow"]
        tail = options["tail_lines"]
        self._place = 0 if tail is None else max(0, len(lines) - tail)
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        while not self.closed:
            if self._place < len(self._lines):
                self._place += 1
                yield self._lines[self._place - 1]
            elif not self._follow or b"END\n" in self._lines:
                return
            else:
                time.sleep(0.005)

    def close(self) -> None:
        self.closed = True


@dataclass
class Api:
    """A running server, and requests to it that need no client."""

    server: ApiServer
    store: EmbeddedStore
    logs: Logs

    def request(self, method, path, body=None, *, token=None, headers=None, timeout=20):
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        request = urllib.request.Request(self.server.url + path, data=data, method=method)
        request.add_header("Authorization", f"Bearer {token or self.server.token}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.remove_header(name.capitalize())
            request.add_header(name, value)
        context = ssl.create_default_context(cafile=str(self.server.ca_path))
        return urllib.request.urlopen(request, context=context, timeout=timeout)

    def call(self, method, path, body=None, **more):
        """The status and the decoded body."""
        try:
            with self.request(method, path, body, **more) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def ok(self, method, path, body=None, **more):
        status, answer = self.call(method, path, body, **more)
        assert status < 300, answer
        return answer

    def merge(self, path, patch):
        headers = {"Content-Type": "application/merge-patch+json"}
        return self.ok("PATCH", path, patch, headers=headers)


@dataclass
class Kubectl:
    """The real kubectl with the server's kubeconfig and nothing else."""

    api: Api
    namespace: str
    home: Path
    started: list[subprocess.Popen] = field(default_factory=list)

    def _command(self, arguments):
        return [KUBECTL, *arguments]

    @property
    def environment(self):
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KUBECONFIG": str(self.home / "config"),
        }

    def run(self, *arguments, stdin=None, more_environment=None):
        return subprocess.run(
            self._command(arguments),
            input=json.dumps(stdin) if isinstance(stdin, dict | list) else stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env=self.environment | (more_environment or {}),
            check=False,
        )

    def __call__(self, *arguments, stdin=None, **more) -> str:
        """The output of a command that succeeds."""
        done = self.run(*arguments, stdin=stdin, **more)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def fails(self, *arguments, stdin=None) -> str:
        """The error output of a command that fails."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)}\n{done.stdout}"
        return done.stderr

    def json(self, *arguments):
        return json.loads(self(*arguments, "-o", "json"))

    def start(self, *arguments) -> subprocess.Popen:
        """A command that goes on; ended with the test."""
        process = subprocess.Popen(
            self._command(arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )
        self.started.append(process)
        return process


@pytest.fixture(scope="module")
def api(tmp_path_factory) -> Iterator[Api]:
    clock = SystemClock()
    store = EmbeddedStore.in_memory(clock)
    logs = Logs()
    server = ApiServer(store, data_dir=tmp_path_factory.mktemp("api"), clock=clock, logs=logs)
    server.start()
    running = Api(server, store, logs)
    running.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS)
    yield running
    server.stop()
    store.close()


@pytest.fixture
def namespace(api, request) -> str:
    name = request.node.name.partition("[")[0].replace("_", "-")[:50].strip("-")
    name = f"{name}-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    api.ok("POST", "/api/v1/namespaces", body)
    return name


@pytest.fixture
def kubectl(api, namespace, tmp_path) -> Iterator[Kubectl]:
    if KUBECTL is None:
        pytest.skip("kubectl is not on PATH")
    config = json.loads(api.server.kubeconfig_path.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    (tmp_path / "config").write_text(json.dumps(config))
    client = Kubectl(api, namespace, tmp_path)
    yield client
    for process in client.started:
        process.kill()
        process.communicate()


def rows(table: str) -> list[list[str]]:
    """A printed table's cells; columns are two spaces or more apart."""
    return [
        [cell for cell in line.split("  ") if cell.strip()] for line in table.splitlines() if line
    ]
