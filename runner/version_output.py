"""The runtime's own version, from the output of `version -json` (runner.md: Steps)."""

import json


def runtime_version(output: bytes) -> str:
    """The version, which both runtimes call `terraform_version`; "" when it cannot be told."""
    text = output.decode("utf-8", "replace").lstrip()
    try:
        document, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return ""
    version = document.get("terraform_version") if isinstance(document, dict) else None
    return version if isinstance(version, str) else ""
