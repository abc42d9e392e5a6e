"""`captfctl reconcile --local` and `captfctl delete --local`: whole lives of objects, here."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from captfctl.cli.connect import running_here
from captfctl.cli.described_input import known_kinds, read_objects
from captfctl.cli.described_variables import check_variables
from captfctl.cli.display import make_display
from captfctl.cli.heartbeat import Heartbeat
from captfctl.cli.local_session import images_that_count, local_session
from captfctl.cli.modules import ModuleSchemas, image_table
from captfctl.cli.options import data_dir, timeout_seconds
from captfctl.cli.progress import Display, Follower, Request
from captfctl.cli.settled import Standing, Verdict
from captfctl.cli.signals import EndRequest, end_requested
from captfctl.cli.targets import (
    Target,
    deleted_first,
    in_order_of_creation,
    target_of,
    targets,
)
from captfctl.clock import SystemClock
from captfctl.cluster.apply import apply
from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.embedded.agent.settings import inherited_environment
from captfctl.embedded.described import BadInput, Described, DescribedSet, Violation
from captfctl.embedded.images import ImageStore, ImageTable, PullError, has_module_files
from captfctl.errors import EnvironmentFault

EXIT_FAILED = 4
EXIT_WAITING = 5
EXIT_TIMEOUT = 6
_EXITS = {
    Standing.READY: 0,
    Standing.WORKING: EXIT_TIMEOUT,
    Standing.WAITING: EXIT_WAITING,
    Standing.FAILED: EXIT_FAILED,
    Standing.LACKING: EnvironmentFault.exit_code,
}


def reconcile_local(files: list[str], data: Path | None, images: Path | None, timeout: str) -> int:
    """Returns the exit code (docs/exit-codes.md). Nothing is stored when the input is bad.

    Raises `Interrupted` when the process is told to end, after the runs have been ended in order.
    """
    clock = SystemClock()
    limit = timeout_seconds(timeout)
    home = data_dir(data)
    table = images_that_count(home, images)
    store = known_kinds(clock)
    described = read_objects(files, store)
    _check_images(described, table, runs_here=not running_here(home))
    check_variables(described, store.door(), ModuleSchemas(table))
    ending = end_requested()
    check = partial(_check_going_on, ending, home)
    followed = targets(described)
    request = Request(clock.now())
    with Heartbeat(clock) as pulse, local_session(home, table, clock, ending, pulse) as door:
        with _shown(followed, pulse) as display:
            follower = Follower(door, followed, clock, display, check, request)
            with pulse.doing("applying the objects"):
                _apply(door, described, ending, pulse)
                request.ask(door, followed)
            verdicts = follower.until_settled(limit)
        _summarize(verdicts)
    return _exit_code(verdicts.values())


def delete_local(files: list[str], data: Path | None, images: Path | None, timeout: str) -> int:
    """Returns the exit code (docs/exit-codes.md). Raises `Interrupted`, as `reconcile_local`."""
    clock = SystemClock()
    limit = timeout_seconds(timeout)
    described = read_objects(files, known_kinds(clock))
    ending, home = end_requested(), data_dir(data)
    check = partial(_check_going_on, ending, home)
    table, followed = image_table(images), targets(described)
    with Heartbeat(clock) as pulse, local_session(home, table, clock, ending, pulse) as door:
        with _shown(followed, pulse) as display:
            follower = Follower(door, followed, clock, display, check)
            with pulse.doing("deleting the objects"):
                _delete(door, deleted_first(described), pulse)
            left = follower.until_gone(limit)
        _summarize(left)
        if not left:
            _delete(door, reversed(described.objects), pulse)
    return _exit_code(left.values())


@contextmanager
def _shown(followed: list[Target], pulse: Heartbeat) -> Iterator[Display]:
    display = make_display(followed, pulse)
    try:
        yield display
    finally:
        display.close()


def _exit_code(verdicts: Iterable[Verdict]) -> int:
    return _EXITS[max((verdict.standing for verdict in verdicts), default=Standing.READY)]


def _check_going_on(ending: EndRequest, home: Path) -> None:
    """Raises when this command, or the control plane in `home` that it only visits, was ended."""
    ending.check()
    if not running_here(home):
        raise EnvironmentFault(
            "the control plane has ended before every object was settled",
            where=str(home),
            why="it belonged to another captfctl command, which is done",
            do="run this command again: it goes on where that one stopped",
        )


def _check_images(described: DescribedSet, table: ImageTable, *, runs_here: bool) -> None:
    """An image that cannot be had would be waited for.

    `runs_here`: runs get their runtime from this process's surroundings, not those of another.
    """
    path = inherited_environment(os.environ).get("PATH", os.defpath)
    store = ImageStore(table, Path(), path)
    violations, faults = [], []
    for item in described:
        if target_of(item) is not None:
            reference = item.document["spec"]["source"]["image"]
            problem = _image_problem(store, table, reference)
            if problem is not None and problem.of_this_machine:
                faults.append(problem)
            elif problem is not None:
                field = "spec.source.image"
                wrong = "; ".join(filter(None, (str(problem), problem.do)))
                violations.append(Violation(item.place(field), wrong, field))
    if violations:
        raise BadInput(violations)
    if faults and runs_here:
        raise EnvironmentFault(faults[0].what, why=faults[0].why, do=faults[0].do)


def _image_problem(store: ImageStore, table: ImageTable, reference: str) -> PullError | None:
    if "@sha256:" in reference:
        return None  # kept by digest when it first ran, whatever the table says now
    try:
        store.check(reference)
    except PullError as problem:
        return problem
    entry = table.entry(reference)
    if entry is not None and not has_module_files(entry.module):
        return PullError(f"image {reference}: its module {entry.module} has no file ending in .tf")
    return None


def _apply(door: Door, described: DescribedSet, ending: EndRequest, pulse: Heartbeat) -> None:
    for item in in_order_of_creation(described):
        ending.check()
        done = apply(door, item.resource, item.document)
        pulse.say(f"{item.resource.kind.lower()}/{item.name} {done.action}")


def _delete(door: Door, items: Iterable[Described], pulse: Heartbeat) -> None:
    for item in items:
        try:
            door.delete(item.resource, item.name, item.namespace)
        except NotFound:
            continue
        pulse.say(f"{item.resource.kind.lower()}/{item.name} deleted")


def _summarize(verdicts: dict[Target, Verdict]) -> None:
    for target, verdict in sorted(verdicts.items()):
        if verdict.standing is Standing.WORKING:
            print(f"{target.shown} is not settled: {verdict.why}", file=sys.stderr)
