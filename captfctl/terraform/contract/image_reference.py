"""Whether a text names an image, by the grammar of OCI and Docker references (30 §3.2)."""

import re

MAX_NAME = 255

_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = re.compile(rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_PATH = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
_TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}")
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_DIGEST_SIZES = {"sha256": 64, "sha384": 96, "sha512": 128}


def image_problem(reference: str) -> str:
    """Why this is no image reference; "" when it is one. Short names count as Docker Hub's."""
    if not reference:
        return "an image is required"
    if _IDENTIFIER.fullmatch(reference):
        return "is an image ID and not a reference: name a repository"
    name, at, digest = reference.partition("@")
    if at and (problem := _digest_problem(digest)):
        return problem
    domain, path = _split_domain(name)
    path, colon, tag = path.partition(":")
    if colon and not _TAG.fullmatch(tag):
        return "has a tag that is not valid"
    if path != path.lower():
        return "has a repository name that is not in lower case"
    if (domain and not _DOMAIN.fullmatch(domain)) or not _PATH.fullmatch(path):
        return "has an invalid format"
    if len(domain or "docker.io") + 1 + len(path) > MAX_NAME:
        return f"has a repository name of more than {MAX_NAME} characters"
    return ""


def _split_domain(name: str) -> tuple[str, str]:
    """The registry's host and the rest; the host is "" for a name of Docker Hub."""
    first, slash, rest = name.partition("/")
    is_host = "." in first or ":" in first or first == "localhost" or first != first.lower()
    return (first, rest) if slash and is_host else ("", name)


def _digest_problem(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        return "has a digest that is not valid"
    algorithm, _, encoded = digest.partition(":")
    if algorithm not in _DIGEST_SIZES:
        return "has a digest of an unsupported algorithm"
    if len(encoded) != _DIGEST_SIZES[algorithm] or encoded != encoded.lower():
        return "has a digest that is not valid"
    return ""
