"""The API server's own files: keys, tokens and access, for their owner only."""

import base64
from pathlib import Path

import msgspec

from captfctl.embedded import files
from captfctl.errors import EnvironmentFault

PRIVATE = 0o600
_NAME = "captfctl-local"


def make_private_directory(path: Path) -> None:
    """Raises `EnvironmentFault` when it cannot be made."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise _fault(path, problem) from None


def write_private(path: Path, content: bytes) -> None:
    """Put the content into the file at once, mode 0600. Raises `EnvironmentFault`."""
    try:
        files.write_private(path, content)
    except OSError as problem:
        raise _fault(path, problem) from None


def read_private(path: Path) -> bytes | None:
    """The file's content; None when there is none. Others' access to it is taken away."""
    try:
        content = path.read_bytes()
        if path.stat().st_mode & 0o077:
            path.chmod(PRIVATE)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise _fault(path, problem) from None
    return content


def write_kubeconfig(path: Path, *, url: str, authority: bytes, user: str, token: str) -> None:
    """Write it in one step, mode 0600. `authority` is the CA certificate in PEM."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": _NAME,
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(authority).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {
                "name": _NAME,
                "context": {"cluster": _NAME, "user": user, "namespace": "default"},
            }
        ],
        "current-context": _NAME,
    }
    # JSON is YAML: every reader of kubeconfigs takes it.
    write_private(path, msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n")


def _fault(path: Path, problem: OSError) -> EnvironmentFault:
    return EnvironmentFault(
        "the embedded API server cannot keep its files",
        where=str(path),
        why=problem.strerror or type(problem).__name__,
        do="choose another data directory with --data, or make this one writable",
    )
