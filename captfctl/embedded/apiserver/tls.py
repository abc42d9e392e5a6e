"""The embedded API server's certificates: a small certificate authority of its own.

Kept in the data directory and used again while they are valid, so that a kubeconfig stays good
over restarts.
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from captfctl.embedded.apiserver.files import make_private_directory, read_private, write_private

AUTHORITY_LIFETIME = timedelta(days=3650)
SERVER_LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
"""A certificate that ends sooner than this is made anew at the start."""

NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADDRESSES = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where the files are: PEM, mode 0600."""

    authority: Path
    server: Path
    server_key: Path


@dataclass(frozen=True, slots=True)
class _Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def ensure_certificates(directory: Path, now: datetime) -> Certificates:
    """The certificates in `directory`, made or renewed as needed. Raises `EnvironmentFault`."""
    make_private_directory(directory)
    authority = _load(directory, "ca", now)
    server = _load(directory, "server", now)
    if authority is None:
        authority, server = _authority(now), None
        _store(directory, "ca", authority)
    if server is None or not _issued_by(server, authority):
        server = _server(authority, now)
        _store(directory, "server", server)
    return Certificates(directory / "ca.crt", directory / "server.crt", directory / "server.key")


def _load(directory: Path, name: str, now: datetime) -> _Pair | None:
    """A stored pair; None when it is absent, unreadable or about to end."""
    certificate = read_private(directory / f"{name}.crt")
    key = read_private(directory / f"{name}.key")
    if certificate is None or key is None:
        return None
    try:
        pair = _Pair(
            x509.load_pem_x509_certificate(certificate),
            serialization.load_pem_private_key(key, None),  # type: ignore[arg-type]
        )
    except ValueError:
        return None
    valid = (
        pair.certificate.not_valid_before_utc
        <= now
        < (pair.certificate.not_valid_after_utc - RENEW_BEFORE)
    )
    return pair if valid and pair.certificate.public_key() == pair.key.public_key() else None


def _store(directory: Path, name: str, pair: _Pair) -> None:
    write_private(directory / f"{name}.key", pair.key_pem())
    write_private(directory / f"{name}.crt", pair.pem())


def _issued_by(server: _Pair, authority: _Pair) -> bool:
    try:
        server.certificate.verify_directly_issued_by(authority.certificate)
    except Exception:  # any of several errors of the library: not usable with this authority
        return False
    return True


def _authority(now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "captfctl local authority")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key, now, AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _Pair(certificate, key)


def _server(authority: _Pair, now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "captfctl local API server")])
    names = x509.SubjectAlternativeName(
        [x509.DNSName(host) for host in NAMES]
        + [x509.IPAddress(ipaddress.ip_address(address)) for address in ADDRESSES]
    )
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    certificate = (
        _builder(name, authority.certificate.subject, key, now, SERVER_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(names, critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return _Pair(certificate, key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # for a clock that is a little behind
        .not_valid_after(now + lifetime)
    )
