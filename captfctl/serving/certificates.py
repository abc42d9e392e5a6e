"""Certificates that this program makes for its own servers."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLOCK_SKEW = timedelta(minutes=5)
"""Certificates are valid from a little earlier on, for clients whose clock is behind."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key."""

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

    def valid(self, now: datetime, margin: timedelta) -> bool:
        """Whether key and certificate belong together and stay valid for `margin` at least."""
        certificate = self.certificate
        in_time = certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - margin
        return in_time and certificate.public_key() == self.key.public_key()

    def issued_by(self, authority: "Pair") -> bool:
        try:
            self.certificate.verify_directly_issued_by(authority.certificate)
        except Exception:  # any of several errors of the library: not usable with this authority
            return False
        return True


def load(certificate: bytes, key: bytes) -> Pair:
    """A pair from its PEM files. Raises `ValueError`."""
    return Pair(
        x509.load_pem_x509_certificate(certificate),
        serialization.load_pem_private_key(key, None),  # type: ignore[arg-type]
    )


def self_signed(name: str, now: datetime, lifetime: timedelta) -> Pair:
    """A server's certificate for clients that do not check who issued it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    return Pair(_builder(subject, subject, key, now, lifetime).sign(key, hashes.SHA256()), key)


def authority(name: str, now: datetime, lifetime: timedelta) -> Pair:
    """A certificate authority that issues servers' certificates and nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
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
        _builder(_name(name), _name(name), key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(certificate, key)


def server(
    name: str,
    issuer: Pair,
    now: datetime,
    lifetime: timedelta,
    *,
    hosts: Sequence[str],
    addresses: Sequence[str],
) -> Pair:
    """A server's certificate for the host names and IP addresses it is reached under."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName(
        [x509.DNSName(host) for host in hosts]
        + [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    )
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
    certificate = (
        _builder(_name(name), issuer.certificate.subject, key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(names, critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(issuer.key, hashes.SHA256())
    )
    return Pair(certificate, key)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


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
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )
