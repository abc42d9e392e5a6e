"""`captfctl reconcile --local`: objects brought to where they should be, here."""

import os
from functools import partial
from pathlib import Path

from captfctl.cli.connect import running_here
from captfctl.cli.described_input import known_kinds, read_objects
from captfctl.cli.described_variables import check_variables
from captfctl.cli.following import check_going_on, exit_code, shown, summarize
from captfctl.cli.heartbeat import Heartbeat
from captfctl.cli.local_session import images_that_count, local_session
from captfctl.cli.modules import ModuleSchemas
from captfctl.cli.options import data_dir, timeout_seconds
from captfctl.cli.progress import Follower, Request
from captfctl.cli.signals import EndRequest, end_requested
from captfctl.cli.targets import (
    in_order_of_creation,
    target_of,
    targets,
)
from captfctl.clock import SystemClock
from captfctl.cluster.apply import apply
from captfctl.cluster.door import Door
from captfctl.embedded.agent.settings import inherited_environment
from captfctl.embedded.described import BadInput, DescribedSet, Violation
from captfctl.embedded.images import ImageStore, ImageTable, PullError, has_module_files
from captfctl.errors import EnvironmentFault


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
    check = partial(check_going_on, ending, home)
    followed = targets(described)
    request = Request(clock.now())
    with Heartbeat(clock) as pulse, local_session(home, table, clock, ending, pulse) as door:
        with shown(followed, pulse) as display:
            follower = Follower(door, followed, clock, display, check, request)
            with pulse.doing("applying the objects"):
                _apply(door, described, ending, pulse)
                request.ask(door, followed)
            verdicts = follower.until_settled(limit)
        summarize(verdicts)
    return exit_code(verdicts.values())


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
