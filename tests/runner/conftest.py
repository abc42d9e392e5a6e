"""Fixtures of the runner's tests."""

from pathlib import Path

import pytest

from tests.runner.harness import Job


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A Job whose runtime succeeds at everything."""
    return Job(tmp_path)
