"""The kubeconfig that leads unchanged clients to the embedded API server."""

import base64
from pathlib import Path

import msgspec

from captfctl.embedded.apiserver.files import write_private

NAME = "captfctl-local"


def write_kubeconfig(path: Path, *, url: str, authority: bytes, user: str, token: str) -> None:
    """Write it in one step, mode 0600. `authority` is the CA certificate in PEM."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": NAME,
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(authority).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {
                "name": NAME,
                "context": {"cluster": NAME, "user": user, "namespace": "default"},
            }
        ],
        "current-context": NAME,
    }
    # JSON is YAML: every reader of kubeconfigs takes it.
    write_private(path, msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n")
