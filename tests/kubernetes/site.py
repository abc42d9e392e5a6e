"""A real control plane as a site of the scenarios."""

import contextlib
import os
import shutil
import ssl
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from captfctl.cluster.live import LiveDoor
from captfctl.install.manifests import manifests
from captfctl.install.workload import SERVICE_ACCOUNT, InstallOptions
from captfctl.model.core import TokenRequest
from captfctl.model.resource import Document
from captfctl.model.resources import SERVICE_ACCOUNTS
from tests.controlplane.assets import Assets
from tests.controlplane.processes import ClusterApi, ControlPlane
from tests.e2e.managed import MANAGER_IMAGE, ManagedSite, port_of
from tests.e2e.site import QUICKSTART
from tests.kubernetes.workers import MACHINE_IMAGE, POOL_IMAGE

NAMESPACE = "captf-system"
TOFU_IMAGE = "registry.example.com/quickstart/tofu:v1"
TIME_IMAGE = "registry.example.com/time/cluster:v1"
TIME_TOFU_IMAGE = "registry.example.com/time/tofu:v1"
LARGE_IMAGE = "registry.example.com/large/cluster:v1"
MODULES = Path(__file__).parent / "modules"
MANAGER_ENVIRONMENT = {"POD_NAMESPACE": NAMESPACE, "SERVICE_ACCOUNT_NAME": SERVICE_ACCOUNT}
_TOKEN_SECONDS = 6 * 3600


class Cluster(ManagedSite):
    """Kubernetes, Cluster API, the manager with its ServiceAccount's token, the node agent.

    The installation is what `captfctl manifests` prints, without the Deployment's pods: the manager
    runs as a process of this machine.
    """

    environment: ClassVar = MANAGER_ENVIRONMENT

    def __init__(self, folder: Path, assets: Assets, images: Path | None = None) -> None:
        """`images`: an image table in place of the one with the quick start's images."""
        self.plane = ControlPlane(assets, folder / "plane")
        super().__init__(folder, self.plane.kubeconfig)
        if images is not None:
            self.images = images.absolute()
        self.cluster_api = ClusterApi(self.plane)

    @property
    def port(self) -> int:
        return self.plane.port

    @property
    def manager_kubeconfig(self) -> Path:
        return self.folder / "manager.kubeconfig"

    def start(self, *, manager: bool = True) -> None:
        self.plane.start()
        with contextlib.ExitStack() as undo:
            undo.callback(self.stop)
            self.node.launch()
            self.cluster_api.start()
            self.install()
            self.node.wait_told("is up")
            if manager:
                self.add_manager("a")
            undo.pop_all()

    def stop(self) -> None:
        self.stop_managers()
        self.stop_node()
        self.cluster_api.stop()
        self.plane.stop()

    def install(self) -> None:
        """`captfctl manifests | kubectl apply --server-side -f -`, and a token for the manager."""
        documents = manifests(InstallOptions(image=MANAGER_IMAGE, replicas=1))
        kept = [document for document in documents if document["kind"] != "Deployment"]
        self.apply(kept)
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        with contextlib.closing(self.door()) as door:
            self.manager_token = self.token(door, SERVICE_ACCOUNT, NAMESPACE)
        self.plane.write_kubeconfig(self.manager_kubeconfig, self.manager_token)

    def apply(self, documents: Sequence[Document]) -> None:
        whole = {"apiVersion": "v1", "kind": "List", "items": documents}
        self.kubectl("apply", "--server-side", "-f", "-", text=msgspec.json.encode(whole).decode())

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

    def ended(self) -> str:
        """The name of a process that is not there any more; empty: all are."""
        captfctl = {"the node agent": self.node} | {
            f"manager {name}": manager for name, manager in self.managers.items()
        }
        parts = {**self.plane.processes, **captfctl}
        if self.cluster_api.process:
            parts["Cluster API's manager"] = self.cluster_api.process
        return next((name for name, part in parts.items() if not part.alive), "")

    def diagnostics(self, path: str, token: str) -> str:
        """What the manager tells who has this token. Raises `HTTPError`."""
        port = port_of(self.managers["a"], "diagnostics")
        request = urllib.request.Request(
            f"https://127.0.0.1:{port}{path}",
            headers={"Authorization": f"Bearer {token}"},
        )
        context = ssl._create_unverified_context()
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return str(answer.read().decode())


class RealSite(Cluster):
    """The cluster of the scenarios: it has images of their own kind."""

    def __init__(self, folder: Path, assets: Assets) -> None:
        super().__init__(folder, assets)
        tofu = assets["tofu"]
        self.add_image(TOFU_IMAGE, module=QUICKSTART, runtime=tofu)
        for image, runtime in ((TIME_IMAGE, {}), (TIME_TOFU_IMAGE, {"runtime": tofu})):
            self.add_image(
                image, module=MODULES / "time", providers=assets.provider_mirror, **runtime
            )
        large = folder / "large"
        shutil.copytree(MODULES / "large", large)
        (large / "random").write_bytes(os.urandom(1_200_000))
        self.add_image(LARGE_IMAGE, module=large)
        self.add_image(MACHINE_IMAGE, module=MODULES / "machine")
        self.add_image(POOL_IMAGE, module=MODULES / "pool")
