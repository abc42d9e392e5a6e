"""A real control plane as a site of the scenarios."""

import contextlib
import subprocess
from pathlib import Path

import msgspec

from captfctl.cluster.live import LiveDoor
from captfctl.install.manifests import manifests
from captfctl.install.workload import SERVICE_ACCOUNT, InstallOptions
from captfctl.model.core import TokenRequest
from captfctl.model.resources import SERVICE_ACCOUNTS
from tests.controlplane.assets import Assets
from tests.controlplane.processes import ClusterApi, ControlPlane, free_port
from tests.e2e.site import Captfctl, Site, eventually

NAMESPACE = "captf-system"
MANAGER_IMAGE = "registry.example.com/captfctl:test"
_TOKEN_SECONDS = 6 * 3600


class RealSite(Site):
    """Kubernetes, Cluster API, the manager with its ServiceAccount's token, the node agent.

    The installation is what `captfctl manifests` prints, without the Deployment's pods: the manager
    runs as a process of this machine.
    """

    serves_logs = False  # the node has no kubelet port

    def __init__(self, folder: Path, assets: Assets, *, runtime: str = "") -> None:
        super().__init__(folder)
        if runtime:
            self.images.write_text(self.images.read_text() + f"  runtime: {runtime}\n")
        self.plane = ControlPlane(assets, folder / "plane")
        self.cluster_api = ClusterApi(self.plane)
        self.kubeconfig = self.plane.kubeconfig
        self.manager_kubeconfig = folder / "manager.kubeconfig"
        self.managers: dict[str, Captfctl] = {}
        self.node = Captfctl(
            folder / "node.log",
            "local",
            "node",
            f"--kubeconfig={self.kubeconfig}",
            f"--images={self.images}",
            f"--data={folder / 'node'}",
            "--name=node-1",
        )

    def start(self) -> None:
        self.plane.start()
        with contextlib.ExitStack() as undo:
            undo.callback(self.stop)
            self.cluster_api.start()
            self.install()
            self.node.start("is up")
            self.add_manager("a")
            undo.pop_all()

    def stop(self) -> None:
        for manager in self.managers.values():
            if manager.alive:
                manager.terminate()
        if self.node.alive:
            self.node.terminate()
        self.cluster_api.stop()
        self.plane.stop()

    def install(self) -> None:
        """`captfctl manifests | kubectl apply --server-side -f -`, and a token for the manager."""
        documents = manifests(InstallOptions(image=MANAGER_IMAGE, replicas=1))
        kept = [document for document in documents if document["kind"] != "Deployment"]
        whole = {"apiVersion": "v1", "kind": "List", "items": kept}
        self.kubectl("apply", "--server-side", "-f", "-", text=msgspec.json.encode(whole).decode())
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        with contextlib.closing(self.door()) as door:
            token = self.token(door, SERVICE_ACCOUNT, NAMESPACE)
        self.plane.write_kubeconfig(self.manager_kubeconfig, token)

    @staticmethod
    def token(door: LiveDoor, account: str, namespace: str) -> str:
        request = TokenRequest(
            api_version="authentication.k8s.io/v1",
            kind="TokenRequest",
            spec={"expirationSeconds": _TOKEN_SECONDS},
        )
        answer = door.create_subresource(
            SERVICE_ACCOUNTS, account, namespace, "token", request, TokenRequest
        )
        return str(answer.status["token"])

    def add_manager(self, name: str, *flags: str, kubeconfig: Path | None = None) -> Captfctl:
        """Start a manager process; several are told apart by `name`."""
        manager = Captfctl(
            self.folder / f"manager-{name}.log",
            "manage",
            f"--kubeconfig={kubeconfig or self.manager_kubeconfig}",
            f"--runner-image={MANAGER_IMAGE}",
            f"--health-addr=127.0.0.1:{free_port()}",
            f"--diagnostics-address=127.0.0.1:{free_port()}",
            "--insecure-diagnostics",
            *flags,
            POD_NAMESPACE=NAMESPACE,
            SERVICE_ACCOUNT_NAME=SERVICE_ACCOUNT,
        )
        manager.start("manager started")
        self.managers[name] = manager
        return manager

    def crash_manager(self) -> None:
        manager = self.managers["a"]
        manager.kill()
        manager.start("manager started")

    def crash_node(self) -> None:
        self.node.kill()
        self.node.start("is up")

    @property
    def node_data(self) -> Path:
        return self.folder / "node" / "node"


def run(*command: str) -> str:
    """A command's output."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


__all__ = ["MANAGER_IMAGE", "NAMESPACE", "RealSite", "eventually"]
