"""The certificate of the diagnostics: the mounted one, else one made at start
(manager.md: Endpoints)."""

import ssl
import tempfile
from datetime import timedelta
from pathlib import Path

from captfctl.clock import Clock
from captfctl.errors import EnvironmentFault

MOUNTED = Path("/tmp/k8s-metrics-server/serving-certs")  # noqa: S108 - where the manifest mounts it

_VERSIONS = {
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_VALID = timedelta(days=365)


def serving_context(clock: Clock, minimum: str, directory: Path = MOUNTED) -> ssl.SSLContext:
    """A server's TLS context. `minimum` is one of `captfctl.settings.TLS_VERSIONS`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[minimum]
    certificate, key = directory / "tls.crt", directory / "tls.key"
    if certificate.exists() and key.exists():
        _load(context, certificate, key)
        return context
    with tempfile.TemporaryDirectory(prefix="captfctl-") as made:
        certificate, key = Path(made) / "tls.crt", Path(made) / "tls.key"
        _make(clock, certificate, key)
        _load(context, certificate, key)
    return context


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as problem:
        raise EnvironmentFault(
            f"the certificate in {certificate.parent} cannot be used", why=str(problem)
        ) from problem


def _make(clock: Clock, certificate: Path, key: Path) -> None:
    from captfctl.serving.certificates import self_signed  # loading the library takes a while

    made = self_signed("captf-manager", clock.now(), _VALID)
    certificate.write_bytes(made.pem())
    key.touch(mode=0o600)
    key.write_bytes(made.key_pem())
