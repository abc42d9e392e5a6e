"""How a pod's processes reach the API."""

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from captfctl.embedded.files import write_private

ROOT_CA = "kube-root-ca.crt"
"""The ConfigMap in which a control plane publishes its certificate authority."""

KUBECONFIG_ENTRY = "pod"


@dataclass(frozen=True, kw_only=True)
class ApiAccess:
    """`server` is a URL such as `https://127.0.0.1:6443`; `ca_path` the PEM file that verifies it.

    `token_path` holds the one bearer token of an API server without ServiceAccounts' tokens (the
    embedded one). None: every pod gets a token of its own ServiceAccount by a TokenRequest.
    """

    server: str
    ca_path: Path
    token_path: Path | None = None

    @property
    def host(self) -> str:
        """The host of `server`."""
        return urlsplit(self.server).hostname or ""

    @property
    def port(self) -> int:
        """The port of `server`, the scheme's own when it names none."""
        parts = urlsplit(self.server)
        return parts.port or (443 if parts.scheme == "https" else 80)


def write_access(directory: Path, access: ApiAccess, namespace: str, token: str | None) -> None:
    """Write what a pod's processes need to reach the API: `kubeconfig`, `token`, `ca.crt` and
    `namespace`. The token itself stands in its own file only; None: the access's own token file.
    """
    token_file = directory / "token"
    if token is not None:
        write_private(token_file, token.encode(), durable=False)
    elif access.token_path is not None:
        _link(token_file, access.token_path)
    contents = {
        "ca.crt": access.ca_path.read_bytes(),
        "namespace": namespace.encode(),
        "kubeconfig": _kubeconfig(directory, access, namespace),
    }
    for name, content in contents.items():
        write_private(directory / name, content, durable=False)


def _link(path: Path, target: Path) -> None:
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target.absolute())
    beside.replace(path)


def _kubeconfig(directory: Path, access: ApiAccess, namespace: str) -> bytes:
    name = KUBECONFIG_ENTRY
    cluster = {"server": access.server, "certificate-authority": str(directory / "ca.crt")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"tokenFile": str(directory / "token")}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}
        ],
        "current-context": name,
    }
    return json.dumps(config, indent=1).encode()
