"""Which values of a run are secret (runner.md: Secret values)."""

import binascii
import json
import os
from collections.abc import Iterator, Mapping

from runner import wire
from runner.redact import SecretSet

_BOOTSTRAP_LINE = 16
_OPAQUE_BYTES = 16
_PLAIN_NAMES = frozenset(
    (
        "TF_DATA_DIR",
        "HOME",
        "TMPDIR",
        "TF_CLI_CONFIG_FILE",
        "TF_IN_AUTOMATION",
        "TF_INPUT",
        "KUBE_NAMESPACE",
        "PATH",
        wire.SERVICE_ACCOUNT_VARIABLE,
    )
)
_PLAIN_PREFIX = "KUBERNETES_"
_TELLING_WORDS = (
    "KEY",
    "SECRET",
    "TOKEN",
    "PASS",
    "CREDENTIAL",
    "PRIVATE",
    "AUTH",
    "CERT",
    "SESSION",
)


def of_environment(variables: Mapping[str, str]) -> SecretSet:
    """Values of a step's environment whose name tells a secret, or that are long enough to be one.

    What is plain by contract (paths, the namespace, the API server's address) is left out.
    """
    secrets = SecretSet()
    for name, value in variables.items():
        if not value or name in _PLAIN_NAMES or name.startswith(_PLAIN_PREFIX):
            continue
        data = os.fsencode(value)
        telling = any(word in name.upper() for word in _TELLING_WORDS)
        if telling or len(data) >= _OPAQUE_BYTES:
            secrets.add(data)
    return secrets


def of_inputs(root: str) -> SecretSet:
    """Values of the variables the root module declares sensitive, and the bootstrap data.

    Files that are missing or malformed contribute nothing.
    """
    secrets = SecretSet()
    values = _load(f"{root}/{wire.VARIABLES_FILE}")
    declared = _load(f"{root}/{wire.MAIN_FILE}").get("variable")
    for name, value in values.items():
        if _sensitive(declared, name):
            for text in _strings(value):
                secrets.add(text.encode("utf-8", "replace"))
    bootstrap = values.get(wire.BOOTSTRAP_DATA)
    if isinstance(bootstrap, str) and bootstrap:
        data = bootstrap.encode("utf-8", "replace")
        secrets.add(data, _BOOTSTRAP_LINE)
        if decoded := _decoded(data):
            secrets.add(decoded, _BOOTSTRAP_LINE)
    return secrets


def _load(path: str) -> dict[str, object]:
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _sensitive(declared: object, name: str) -> bool:
    """Whether the root module declares the variable sensitive.

    JSON syntax allows a block as an object or as a list of objects.
    """
    blocks = [declared] if isinstance(declared, dict) else declared
    for block in blocks if isinstance(blocks, list) else []:
        body = block.get(name) if isinstance(block, dict) else None
        for settings in body if isinstance(body, list) else [body]:
            if isinstance(settings, dict) and settings.get("sensitive") is True:
                return True
    return False


def _strings(value: object) -> Iterator[str]:
    """The strings in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)


def _decoded(data: bytes) -> bytes:
    """What standard base64 data (line breaks allowed) holds when that is text; else empty."""
    try:
        decoded = binascii.a2b_base64(data.translate(None, b"\r\n"), strict_mode=True)
        decoded.decode("utf-8")
    except ValueError:
        return b""
    return decoded
