"""What `captfctl approve` reads, asks and prints."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from captfctl.approvals import Evidence, Outcome, Refused, Request, Result, Who, approve
from captfctl.approvals.checks import warnings
from captfctl.approvals.evidence import own_user
from captfctl.cli.confirm import answer_to, has_terminal
from captfctl.cli.connect import cluster_door, running_here
from captfctl.cli.options import check_files_alone, data_dir
from captfctl.cli.output import Document, escaped, kubectl_patch, refusal_document
from captfctl.cli.plan_text import document_of, print_plan
from captfctl.cli.targets import OURS, named
from captfctl.clock import Clock, SystemClock
from captfctl.cluster.door import Door
from captfctl.errors import InputError
from captfctl.model.plan import TARGET_KINDS
from captfctl.model.resources import TERRAFORM_PLANS


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line, as it was written."""

    plan: str
    target: str
    namespace: str
    expect_hash: str
    by: str
    yes: bool
    allow_destructive: bool
    dry_run: bool
    files: list[str]


def approve_plan(
    asked: Asked, data: Path | None, kubeconfig: Path | None, *, as_json: bool
) -> None:
    """Raises `InputError` for a command line that makes no sense, `Refused` when the plan is not
    approved."""
    request, clock = _request(asked), SystemClock()
    screen = _Screen(clock, as_json=as_json)
    if asked.files:
        check_files_alone(data, kubeconfig)
        if not asked.by:
            raise InputError("--by is missing", do="say who would approve: --by USER")
        _in_files(asked.files, request, screen, clock)
        return
    home = data_dir(data)
    stopped = kubeconfig is None and not running_here(home)
    with cluster_door(kubeconfig, home, clock) as door:
        who = _local_user() if stopped else own_user(door)
        _approve(door, request, who, screen)


def _local_user() -> Who:
    """Who acts while the local control plane is stopped."""
    from captfctl.embedded.store import LOCAL_ADMIN

    return Who(LOCAL_ADMIN["username"])


def _in_files(files: list[str], request: Request, screen: "_Screen", clock: Clock) -> None:
    """A plan of files is checked as one of a cluster; whoever is named would approve it."""
    from captfctl.cli.described_input import door_of_files

    _approve(door_of_files(files, clock), request, Who(request.by), screen)


def _approve(door: Door, request: Request, who: Who, screen: "_Screen") -> None:
    try:
        screen.end(approve(door, request, who, screen))
    except Refused as refused:
        screen.refuse(refused)
        raise


class _Screen:
    """What a person sees of an approval. With `as_json` standard output has one document, and the
    plan is shown as text only where somebody is asked about it."""

    def __init__(self, clock: Clock, *, as_json: bool) -> None:
        self._clock = clock
        self._as_json = as_json
        self._found: Evidence | None = None

    def show(self, found: Evidence) -> None:
        self._found = found
        if not self._as_json:
            self._print(found, sys.stdout)

    def confirm(self, found: Evidence, *, by_name: bool) -> bool | None:
        shown = sys.stderr if self._as_json else sys.stdout
        if self._as_json and has_terminal(shown):
            self._print(found, shown)
        name = found.plan.metadata.name
        question = f"Type {name} to approve what it destroys: " if by_name else "Approve it? [y/N] "
        answer = answer_to(question, shown)
        if answer is None:
            return None
        return answer == name if by_name else answer.lower() in ("y", "yes")

    def end(self, outcome: Outcome) -> None:
        found = outcome.found
        if self._as_json:
            self._print_document(found, {"result": outcome.result, **_written(outcome)})
            return
        print(_last_words(outcome))

    def refuse(self, refused: Refused) -> None:
        """Only for programs: a person is told as of any error."""
        if self._as_json:
            self._print_document(self._found, refusal_document(refused))

    def _print(self, found: Evidence, file: TextIO) -> None:
        print_plan(found, warnings(found), self._clock.now(), file)

    @staticmethod
    def _print_document(found: Evidence | None, ending: Document) -> None:
        document = document_of(found, warnings(found)) if found else {}
        print(json.dumps({**document, **ending}, indent=2))


def _written(outcome: Outcome) -> Document:
    if outcome.result is Result.DRY_RUN:
        return {"patch": outcome.patch}
    by = outcome.patch["spec"]["approvedBy"] if outcome.patch else ""
    return {"approvedBy": by or outcome.found.plan.spec.approved_by}


def _last_words(outcome: Outcome) -> str:
    plan = outcome.found.plan
    name = f"{TERRAFORM_PLANS.kind.lower()}/{plan.metadata.name}"
    if outcome.result is Result.ALREADY_APPROVED:
        by = escaped(plan.spec.approved_by)
        return f"{name} was approved by {by} before; nothing was written."
    if outcome.result is Result.APPROVED:
        return f"{name} approved by {escaped(outcome.patch['spec']['approvedBy'])}"
    meta = plan.metadata
    command = kubectl_patch(TERRAFORM_PLANS.plural, meta.namespace, meta.name, outcome.patch)
    return f"{name} can be approved; nothing was written. What would be:\n\n  {command}"


def _request(asked: Asked) -> Request:
    """Raises `InputError`."""
    if bool(asked.plan) == bool(asked.target):
        raise InputError(
            "say what to approve" if not asked.plan else "a plan and --target exclude each other",
            do="name one plan, or an object with --target KIND/NAME; `captfctl get terraformplans` "
            "lists the plans",
        )
    kind, name = _target(asked.target) if asked.target else ("", "")
    return Request(
        namespace=asked.namespace,
        plan=_plan(asked.plan),
        kind=kind,
        name=name,
        expect_hash=asked.expect_hash,
        by=asked.by,
        allow_destructive=asked.allow_destructive,
        yes=asked.yes,
        dry_run=asked.dry_run or bool(asked.files),
    )


def _plan(text: str) -> str:
    """The name alone; `kubectl get -o name` writes the kind before it."""
    return named(text, "", _PLANS).name if "/" in text else text


def _target(text: str) -> tuple[str, str]:
    target = named(text, "", OURS)
    kind = target.resource.kind
    if kind not in TARGET_KINDS:
        raise InputError(
            f"no plans exist for {kind} objects",
            why="a machine is never changed: another one takes its place",
        )
    return kind, target.name


_PLANS = ((TERRAFORM_PLANS, "tfplan"),)
