"""An API server for the tests of one process: the one that is named, or one that is started."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane.assets import AssetsMissingError, find
from tests.controlplane.processes import ControlPlane

KUBECONFIG = "CAPTFCTL_TEST_KUBECONFIG"


@contextmanager
def api_server(folder: Path) -> Iterator[tuple[Path, Callable[[], None] | None]]:
    """The kubeconfig of a real API server with its controllers, kept under `folder`.

    Second, what makes it forget old versions: a server that was named cannot be made to. Skips the
    test when none is named and none can be started.
    """
    named = os.environ.get(KUBECONFIG)
    if named:
        yield Path(named), None
        return
    try:
        plane = ControlPlane(find(), folder / "plane", scheduler=False)
    except AssetsMissingError as error:
        pytest.skip(f"{KUBECONFIG} names no API server, and {error}")
    plane.start()
    try:
        yield plane.kubeconfig, plane.forget
    finally:
        plane.stop()
