"""What kubectl makes of a text, as it would send it to a server. No server is asked."""

import json
import os
import shutil
import subprocess

import pytest

_READ = ("annotate", "--local", "-f", "-", "read-by=kubectl", "-o", "json")


def read(text: str | bytes) -> list[dict] | str:
    """The objects of a text, lists taken apart; or why kubectl refuses it."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not on PATH")
    given = text if isinstance(text, bytes) else text.encode()
    env = {"KUBECONFIG": os.devnull, "HOME": "/nowhere", "PATH": os.environ["PATH"]}
    done = subprocess.run([kubectl, *_READ], input=given, capture_output=True, env=env)
    if done.returncode != 0:
        return done.stderr.decode()
    found, output = [], done.stdout.decode().strip()
    while output:
        document, end = json.JSONDecoder().raw_decode(output)
        del document["metadata"]["annotations"]
        found.append(document)
        output = output[end:].strip()
    return found


def same(one, other) -> bool:
    """Whether two values are one in JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if isinstance(one, dict):
        keys = isinstance(other, dict) and one.keys() == other.keys()
        return keys and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, int):
        other = float(other)  # digits of kubectl's beyond those of a fraction
    return isinstance(one, str) == isinstance(other, str) and one == other
