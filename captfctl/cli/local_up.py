"""Running the control plane until it is told to end."""

from pathlib import Path

from captfctl.cli import logs
from captfctl.cli.described_input import known_kinds, read_objects
from captfctl.cli.described_variables import check_variables
from captfctl.cli.heartbeat import Heartbeat
from captfctl.cli.local_session import ended_in_order, make_plane
from captfctl.cli.memory import give_back_large_blocks
from captfctl.cli.modules import ModuleSchemas, image_table
from captfctl.cli.options import data_dir
from captfctl.cli.signals import end_requested
from captfctl.clock import Clock, SystemClock
from captfctl.cluster.apply import apply
from captfctl.embedded.described import DescribedSet
from captfctl.embedded.images import ImageTable
from captfctl.embedded.plane import LocalPlane


def local_up(
    data: Path | None, images: Path | None, files: list[str], port: int, verbosity: int
) -> int:
    """Returns the exit code. Bad objects are refused before anything starts."""
    logs.set_up(verbosity)
    give_back_large_blocks()
    ending = end_requested()
    clock = SystemClock()
    table = image_table(images)
    described = _read(files, table, clock)
    plane = make_plane(data_dir(data), table, clock, port)
    with Heartbeat(clock) as pulse:
        with pulse.doing("starting the control plane"):
            plane.start()
        with ended_in_order(plane, ending, pulse):
            for item in described or ():
                done = apply(plane.door, item.resource, item.document)
                pulse.say(f"{item.resource.kind.lower()}/{item.name} {done.action}")
            pulse.say(_greeting(plane))
            while not ending.wait(3600.0):
                pass
    return 0


def _read(files: list[str], table: ImageTable, clock: Clock) -> DescribedSet | None:
    if not files:
        return None
    store = known_kinds(clock)
    described = read_objects(files, store)
    check_variables(described, store.door(), ModuleSchemas(table))
    return described


def _greeting(plane: LocalPlane) -> str:
    return (
        f"The control plane is up at {plane.api.url}; everything is kept in {plane.data}.\n"
        f"In another terminal:\n\n"
        f"  export KUBECONFIG={plane.kubeconfig}\n"
        f"  kubectl get terraformclusters\n\n"
        "Ctrl-C ends it."
    )
