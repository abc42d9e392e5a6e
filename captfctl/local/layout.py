"""Where the local control plane keeps what, below its data directory (docs/local.md)."""

from pathlib import Path

STORE = Path("store")
API = Path("api")
NODE = Path("node")
KUBECONFIG = API / "kubeconfig"
