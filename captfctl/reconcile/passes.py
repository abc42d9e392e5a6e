"""One reconcile pass of an object (reconcile.md: Order of a pass)."""

import logging

from captfctl.cluster.errors import REFUSALS, Conflict, NamespaceTerminating
from captfctl.controller import Result
from captfctl.decide import constants
from captfctl.errors import CaptfError
from captfctl.model.conditions import Type
from captfctl.model.events import EventReason
from captfctl.model.kinds import Kind
from captfctl.reconcile import bookkeeping, plans, preamble, settled
from captfctl.reconcile.context import DecideAgain, Pass
from captfctl.reconcile.env import Env
from captfctl.reconcile.finish import sum_up
from captfctl.reconcile.kinds import RULES
from captfctl.reconcile.known import Known
from captfctl.reconcile.paused import paused_branch
from captfctl.reconcile.preamble import Entered
from captfctl.reconcile.report import show, transitions
from captfctl.reconcile.run_branch import run_branch
from captfctl.reconcile.setup import set_up
from captfctl.runs import finished
from captfctl.runs.slots import SlotOwner

_REMEDIATIONS: dict[str, str] = {
    EventReason.REMEDIATION_REQUESTED: "requested",
    EventReason.REMEDIATION_WITHDRAWN: "withdrawn",
}

log = logging.getLogger(__name__)


class PassFailed(CaptfError):
    """A pass failed, and so did writing what it had learned."""

    code = "PassFailed"


def reconcile(kind: Kind, key: tuple[str, str], env: Env) -> Result:
    """One pass of the object `key` = (namespace, name). Raises what makes it worth retrying."""
    try:
        return _pass(kind, key, env)
    finally:
        env.slots.passed(SlotOwner(kind.name, *key))


def _pass(kind: Kind, key: tuple[str, str], env: Env) -> Result:
    cached = env.cache.own(RULES[kind.name].resource, *key)
    if cached is None:
        env.metrics.forget(kind.name, *key)
        return preamble.DONE
    entered = preamble.enter(env, RULES[kind.name](cached, env.cache))
    if isinstance(entered, Result):
        return entered
    try:
        return _complete(entered)
    except DecideAgain:
        _write(entered.p)
        return preamble.after(constants.LAG_REQUEUE)


def _complete(entered: Entered) -> Result:
    """The pass after its preamble: whatever happens, what it learned is written."""
    p, known = entered.p, None
    try:
        found = set_up(p, entered.jobs)
        known = plans.keep(p, bookkeeping.keep(p, found))
        ended = paused_branch(p, known) if p.paused else run_branch(p, known, found.state)
    except DecideAgain:
        raise
    except Exception as failure:
        _write_despite(p, known, failure)
        raise
    settled.leave(p, ended, entered.observed)
    _write(p)
    _mark_read(p, ended.known)
    if p.let_go:
        preamble.forget(p)
    elif not p.paused:
        _follow_up(p)
    if ended.known.credentials_error is not None:
        raise ended.known.credentials_error
    return ended.result


def _write(p: Pass) -> None:
    """The deferred patch, then what may only follow it."""
    p.persist()
    transitions(p)
    p.record(*p.later)


def _write_despite(p: Pass, known: Known | None, failure: Exception) -> None:
    """What was learned before a failure."""
    if isinstance(failure, REFUSALS) and not isinstance(failure, NamespaceTerminating):
        # Trying again alone will not help, and the log is not where people look.
        p.record(EventReason.REQUEST_REFUSED.says(f"{failure}; it is tried again", once=True))
    if known is not None:
        sum_up(p, known)
    try:
        _write(p)
    except Conflict:
        return  # what was learned is outdated: the next pass reads the new object
    except Exception as problem:
        raise PassFailed(f"{failure}; then the status was not written: {problem}") from failure
    if known is not None:
        _mark_read(p, known)


def _follow_up(p: Pass) -> None:
    """What its kind writes elsewhere."""
    health = p.conditions[Type.INFRASTRUCTURE_HEALTHY]
    for note in p.rules.follow_up(p.env.door, health.reason if health else "", p.config):
        p.record(note)
        if note.reason in _REMEDIATIONS:
            p.env.metrics.remediation(_REMEDIATIONS[note.reason])


def _mark_read(p: Pass, known: Known) -> None:
    """The finished Jobs as read, and the gauges."""
    for text in finished.mark(p.env.door, known.books.unread):
        log.warning("%s/%s: %s", p.owner.namespace, p.owner.name, text)
    if not p.let_go:
        show(p, known)
