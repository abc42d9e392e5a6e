"""Marks of tests that run real programs: elsewhere they are skipped, and say so."""

import shutil

import pytest


def _needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not on PATH")


NEEDS_TERRAFORM = _needs("terraform")
NEEDS_KUBECTL = _needs("kubectl")
