"""The certificates of the embedded control plane's servers: a small authority of their own.

Kept in the data directory and used again while they are valid, so that a kubeconfig stays good
over restarts.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from captfctl.embedded.apiserver.files import make_private_directory, read_private, write_private
from captfctl.serving import certificates
from captfctl.serving.certificates import Pair

AUTHORITY_LIFETIME = timedelta(days=3650)
SERVER_LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
"""A certificate that ends sooner than this is replaced at the start."""

NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADDRESSES = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where the files are: PEM, mode 0600."""

    authority: Path
    server: Path
    server_key: Path


def ensure_certificates(directory: Path, now: datetime) -> Certificates:
    """The certificates in `directory`, made or renewed as needed. Raises `EnvironmentFault`."""
    make_private_directory(directory)
    authority = _load(directory, "ca", now)
    server = _load(directory, "server", now)
    if authority is None:
        authority = certificates.authority("captfctl local authority", now, AUTHORITY_LIFETIME)
        server = None
        _store(directory, "ca", authority)
    if server is None or not server.issued_by(authority):
        server = certificates.server(
            "captfctl local API server",
            authority,
            now,
            SERVER_LIFETIME,
            hosts=NAMES,
            addresses=ADDRESSES,
        )
        _store(directory, "server", server)
    return Certificates(directory / "ca.crt", directory / "server.crt", directory / "server.key")


def _load(directory: Path, name: str, now: datetime) -> Pair | None:
    """A stored pair; None when it is absent, unreadable or about to end."""
    certificate = read_private(directory / f"{name}.crt")
    key = read_private(directory / f"{name}.key")
    if certificate is None or key is None:
        return None
    try:
        pair = certificates.load(certificate, key)
    except ValueError:
        return None
    return pair if pair.valid(now, RENEW_BEFORE) else None


def _store(directory: Path, name: str, pair: Pair) -> None:
    write_private(directory / f"{name}.key", pair.key_pem())
    write_private(directory / f"{name}.crt", pair.pem())
