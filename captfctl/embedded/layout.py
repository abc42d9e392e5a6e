"""Where the local control plane keeps what, below its data directory (docs/local.md)."""

from pathlib import Path

STORE = Path("store")
API = Path("api")
NODE = Path("node")
KUBECONFIG = API / "kubeconfig"
IMAGES = Path("images")
"""A file that names the image table of the running control plane; empty when it has none."""
