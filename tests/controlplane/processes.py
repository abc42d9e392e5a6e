"""Starting and ending the processes of a real control plane on free loopback ports."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tests.controlplane.assets import Assets
from tests.e2e.site import die_with_parent

START_SECONDS = 60.0


class StartError(Exception):
    """A process of the control plane did not come up; the message ends with its last output."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Process:
    """One child with its output in a file. It dies with the tests, also when they are killed."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.child = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | dict(self.environment),
                preexec_fn=die_with_parent,
                start_new_session=True,  # Ctrl-C ends it in its turn, not all at once
            )

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def signal(self, number: signal.Signals) -> None:
        assert self.child is not None
        self.child.send_signal(number)

    def stop(self, seconds: float = 10.0) -> None:
        if self.child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.child.send_signal(signal.SIGCONT)
            self.child.terminate()
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.child = None

    def kill(self) -> None:
        assert self.child is not None
        self.child.kill()
        self.child.wait()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "RequestResponse",
            "resources": [{"group": "batch", "resources": ["jobs", "jobs/status"]}],
        },
        {"level": "Metadata"},
    ],
}

_AUDIT_LOG_MEGABYTES = 1_000_000
"""Never reached: who reads the log finds all of it in one file."""


class ControlPlane:
    """etcd, API server, controller manager and scheduler of Kubernetes in one folder.

    `audit_log` holds one JSON line per request, for tests that ask who did what.
    """

    def __init__(self, assets: Assets, folder: Path, *, scheduler: bool = True) -> None:
        self.assets = assets
        self.folder = folder
        self.token = secrets.token_hex(16)
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = folder / "kubeconfig"
        self.audit_log = folder / "audit.log"
        self._etcd_port = free_port()
        self._with_scheduler = scheduler
        self.processes: dict[str, Process] = {}

    def start(self) -> None:
        """Raises `StartError`. What was started is stopped again then."""
        try:
            self._write_files()
            self._run("etcd", self._etcd())
            self._run("kube-apiserver", self._api_server())
            self._wait_ready()
            self._run("kube-controller-manager", self._controller_manager())
            if self._with_scheduler:
                self._run("kube-scheduler", self._scheduler())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for process in reversed(self.processes.values()):
            process.stop()

    def restart(self, name: str) -> None:
        """Start a process again that was stopped or killed."""
        self.processes[name].start()
        self._wait_ready()

    def forget(self) -> None:
        """Only the present versions of objects stay readable, as after five minutes of etcd's life.

        The API server is started again: it could tell old versions from memory.
        """
        status = self._ask_etcd("maintenance/status", {})
        self._ask_etcd(
            "kv/compaction", {"revision": status["header"]["revision"], "physical": True}
        )
        self.processes["kube-apiserver"].kill()
        self.restart("kube-apiserver")

    def _ask_etcd(self, call: str, arguments: dict[str, Any]) -> Any:
        url = f"http://127.0.0.1:{self._etcd_port}/v3/{call}"
        request = urllib.request.Request(url, json.dumps(arguments).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def _run(self, name: str, arguments: Sequence[str]) -> None:
        process = Process(name, [str(self.assets[name]), *arguments], self.folder / f"{name}.log")
        self.processes[name] = process
        process.start()

    def _write_files(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        key = self.folder / "service-accounts.key"
        subprocess.run(
            ["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True
        )
        (self.folder / "tokens.csv").write_text(f'{self.token},admin,1,"system:masters"\n')
        (self.folder / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))
        self.write_kubeconfig(self.kubeconfig, self.token)

    @property
    def ca_path(self) -> Path:
        """What verifies the API server."""
        return self.folder / "certs" / "apiserver.crt"

    def write_kubeconfig(
        self, path: Path, token: str, *, server: str = "", ca_path: Path | None = None
    ) -> None:
        """A kubeconfig for `token` against this server, or a proxy before it."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {
                        "server": server or self.url,
                        "certificate-authority": str(ca_path or self.ca_path),
                    },
                }
            ],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [
                {
                    "name": "test",
                    "context": {"cluster": "test", "user": "test", "namespace": "default"},
                }
            ],
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))

    def _etcd(self) -> list[str]:
        client = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{free_port()}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self) -> list[str]:
        key = self.folder / "service-accounts.key"
        return [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            f"--cert-dir={self.folder / 'certs'}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--service-cluster-ip-range=10.99.0.0/24",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            "--kubelet-preferred-address-types=InternalIP",
            f"--audit-log-path={self.audit_log}",
            f"--audit-log-maxsize={_AUDIT_LOG_MEGABYTES}",
            f"--audit-policy-file={self.folder / 'audit-policy.json'}",
        ]

    def _controller_manager(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--service-account-private-key-file={self.folder / 'service-accounts.key'}",
            f"--root-ca-file={self.ca_path}",
            f"--cert-dir={self.folder / 'controller-manager-certs'}",
            f"--secure-port={free_port()}",
            "--bind-address=127.0.0.1",
            "--use-service-account-credentials=false",
            "--leader-elect=false",
        ]

    def _scheduler(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--cert-dir={self.folder / 'scheduler-certs'}",
            f"--secure-port={free_port()}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
        ]

    def request(self, path: str, *, timeout: float = 10.0) -> bytes:
        """GET as the administrator; the answer's body."""
        context = ssl.create_default_context(cafile=str(self.ca_path))
        request = urllib.request.Request(
            self.url + path, headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=timeout, context=context) as answer:
            body: bytes = answer.read()
            return body

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for process in self.processes.values():
                if not process.alive:
                    raise StartError(f"{process.name} ended at start:\n{process.tail()}")
            with contextlib.suppress(OSError, urllib.error.URLError, ssl.SSLError):
                self.request("/readyz", timeout=2.0)
                self.request("/api/v1/namespaces/default", timeout=2.0)
                return
            time.sleep(0.1)
        server = self.processes["kube-apiserver"]
        raise StartError(f"the API server is not ready after {START_SECONDS} s:\n{server.tail()}")


class ClusterApi:
    """The real Cluster API core manager, with its CRDs installed and its webhooks left out."""

    LABELS: ClassVar = {
        "cluster.x-k8s.io/v1beta1": "v1beta1",
        "cluster.x-k8s.io/v1beta2": "v1beta2",
    }

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.process: Process | None = None

    def start(self) -> None:
        folder = self.plane.folder / "cluster-api"
        folder.mkdir(exist_ok=True)
        self._install_crds()
        _self_signed(folder)
        self.process = Process(
            "cluster-api-manager",
            [
                str(self.plane.assets["cluster-api-manager"]),
                f"--kubeconfig={self.plane.kubeconfig}",
                f"--webhook-cert-dir={folder}",
                f"--webhook-port={free_port()}",
                f"--diagnostics-address=127.0.0.1:{free_port()}",
                "--insecure-diagnostics",
                "--feature-gates=ClusterTopology=true",
                f"--health-addr=127.0.0.1:{free_port()}",
            ],
            folder / "manager.log",
            {"POD_NAMESPACE": "default", "POD_NAME": "capi", "POD_UID": "capi"},
        )
        self.process.start()

    def stop(self) -> None:
        if self.process:
            self.process.stop()

    def _install_crds(self) -> None:
        kubectl = [_kubectl(), f"--kubeconfig={self.plane.kubeconfig}"]
        files = sorted(self.plane.assets.cluster_api_crds.glob("*.yaml"))
        subprocess.run(
            [*kubectl, "apply", "--server-side", "-f", "-"],
            input="---\n".join(_labelled(file.read_text(), self.LABELS) for file in files),
            text=True,
            check=True,
            capture_output=True,
        )
        names = [f"customresourcedefinition/{_crd_name(file)}" for file in files]
        subprocess.run(
            [*kubectl, "wait", "--for=condition=Established", "--timeout=60s", *names],
            check=True,
            capture_output=True,
        )


def _kubectl() -> str:
    found = shutil.which("kubectl")
    if found is None:
        raise StartError("kubectl is not on PATH; it installs the CRDs of Cluster API")
    return found


def _labelled(definition: str, labels: Mapping[str, str]) -> str:
    """A generated definition, which has no labels, with these: reading it as YAML would take
    longer than all the rest."""
    block = "".join(f"    {name}: {value}\n" for name, value in labels.items())
    labelled = definition.replace("\nmetadata:\n", f"\nmetadata:\n  labels:\n{block}", 1)
    assert labelled != definition
    return labelled


def _crd_name(file: Path) -> str:
    group, _, plural = file.stem.partition("_")
    return f"{plural}.{group}"


def _self_signed(folder: Path) -> None:
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-keyout",
            "tls.key",
            "-out",
            "tls.crt",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@contextlib.contextmanager
def running(plane: ControlPlane) -> Iterator[ControlPlane]:
    plane.start()
    try:
        yield plane
    finally:
        plane.stop()
