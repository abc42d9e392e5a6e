"""A local control plane for the time of one command, or the one that is running already."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from captfctl.cli.connect import running_here
from captfctl.cli.ending import ADOPTED, end_in_order, still_running
from captfctl.cli.heartbeat import Heartbeat
from captfctl.cli.modules import ModuleSchemas, image_table
from captfctl.cli.signals import EndRequest, Interrupted
from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.embedded.images import ImageTable
from captfctl.embedded.layout import IMAGES, KUBECONFIG
from captfctl.embedded.plane import LocalPlane, Part
from captfctl.manager import Manager
from captfctl.settings import ManagerSettings

RUNNER_IMAGE = "captfctl.local/runner:built-in"
"""Stands for this program's own runner; the node agent places it without an image table's help."""


def images_that_count(data: Path, images: Path | None) -> ImageTable:
    """The table that runs will use: that of the control plane running in `data`, else as given."""
    if not running_here(data):
        return image_table(images)
    with contextlib.suppress(OSError):
        served = (data / IMAGES).read_text()
        return image_table(Path(served) if served else None)
    return image_table(images)


def make_plane(data: Path, images: ImageTable, clock: Clock, port: int = 0) -> LocalPlane:
    """A control plane with a manager in it, not started yet."""

    def controllers(door: Door) -> Sequence[Part]:
        settings = ManagerSettings(
            runner_image=RUNNER_IMAGE, health_addr="", diagnostics_address=""
        )
        return (Manager(door, settings, clock, schema_of=ModuleSchemas(images)),)

    return LocalPlane(
        data=data,
        images=images,
        clock=clock,
        port=port,
        environ=os.environ,
        controllers=controllers,
    )


@contextmanager
def local_session(
    data: Path, images: ImageTable, clock: Clock, ending: EndRequest, pulse: Heartbeat
) -> Iterator[Door]:
    """The door of the control plane in `data`: started for this block unless it runs already."""
    if running_here(data):
        with _visit(data, ending) as door:
            yield door
        return
    plane = make_plane(data, images, clock)
    with pulse.doing("starting the control plane"):
        plane.start()
    with ended_in_order(plane, ending, pulse):
        yield plane.door


@contextmanager
def ended_in_order(plane: LocalPlane, ending: EndRequest, pulse: Heartbeat) -> Iterator[None]:
    """End the started control plane after the block, and say what became of its runs."""

    def left() -> str:
        runs = still_running(plane.door)
        return f"{runs} may go on: {ADOPTED}" if runs else "nothing was running"

    ending.left = left
    try:
        yield
    finally:
        end_in_order(plane, pulse, interrupted=ending.is_set())


@contextmanager
def _visit(data: Path, ending: EndRequest) -> Iterator[Door]:
    from captfctl.cluster.live import LiveDoor

    door = LiveDoor.from_kubeconfig(data / KUBECONFIG)

    def left() -> str:
        runs = still_running(door)
        return "the control plane that runs here goes on" + (f", and so does {runs}" * bool(runs))

    ending.left = left
    try:
        yield door
    except Interrupted:
        print(f"interrupted: {left()}", file=sys.stderr)
        raise
    finally:
        door.close()
