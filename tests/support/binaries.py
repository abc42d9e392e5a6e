"""Marks of tests that run real programs: elsewhere they are skipped, and say so."""

import shutil

import pytest


def _needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not on PATH")


NEEDS_TERRAFORM = _needs("terraform")
NEEDS_KUBECTL = _needs("kubectl")
LOCAL_STORIES = [pytest.mark.terraform, pytest.mark.kubectl, NEEDS_TERRAFORM, NEEDS_KUBECTL]
"""Of stories that real programs play on the embedded control plane."""
CLUSTER_STORIES = [
    pytest.mark.kubernetes,
    pytest.mark.timeout(300),
    NEEDS_TERRAFORM,
    NEEDS_KUBECTL,
]
"""Of stories on a real control plane."""
