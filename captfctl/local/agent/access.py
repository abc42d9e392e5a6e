"""How a pod's processes reach the API."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ApiAccess:
    """`server` is a URL such as `https://127.0.0.1:6443`; `ca_path` the PEM file that verifies it.

    `token_path` holds the one bearer token of an API server without ServiceAccounts' tokens (the
    embedded one). None: every pod gets a token of its own ServiceAccount by a TokenRequest.
    """

    server: str
    ca_path: Path
    token_path: Path | None = None
