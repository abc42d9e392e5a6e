"""One reconcile pass of a `TerraformCluster` (reconcile.md: Order of a pass)."""

import logging

from captfctl.cluster.errors import Conflict
from captfctl.controller import Result
from captfctl.decide import constants
from captfctl.errors import CaptfError
from captfctl.model.terraform import TerraformCluster
from captfctl.reconcile import preamble
from captfctl.reconcile.context import DecideAgain, Pass
from captfctl.reconcile.env import Env
from captfctl.reconcile.finish import sum_up
from captfctl.reconcile.owners import KIND
from captfctl.reconcile.paused import paused_branch
from captfctl.reconcile.report import show, transitions
from captfctl.reconcile.run import run_branch
from captfctl.reconcile.setup import set_up
from captfctl.reconcile.sweep import sweep_quietly
from captfctl.runs import finished

log = logging.getLogger(__name__)


class PassFailed(CaptfError):
    """A pass failed, and so did writing what it had learned."""

    code = "PassFailed"


def reconcile_cluster(key: tuple[str, str], env: Env) -> Result:
    """One pass of the object `key` = (namespace, name). Raises what makes it worth retrying."""
    cached = env.cache.terraform_cluster(*key)
    if cached is None:
        env.metrics.forget(KIND, *key)
        return preamble.DONE
    return reconcile(cached, env)


def reconcile(cached: TerraformCluster, env: Env) -> Result:
    entered = preamble.enter(env, cached)
    return entered if isinstance(entered, Result) else complete(entered)


def complete(p: Pass) -> Result:
    """The pass after its preamble: whatever happens, what it learned is written."""
    result, failure, mark = preamble.DONE, None, True
    try:
        set_up(p)
        result = paused_branch(p) if p.paused else run_branch(p)
    except DecideAgain:
        result, mark = preamble.after(constants.LAG_REQUEUE), False
    except Exception as problem:
        failure = problem
        if p.books is not None:
            sum_up(p)
    _write(p, failure, mark=mark)
    if failure is not None:
        raise failure
    if p.let_go:
        env = p.env
        env.metrics.forget(p.kind, p.owner.namespace, p.owner.name)
        sweep_quietly(env.door, p.owner.namespace)
    if p.credentials_error is not None:
        raise p.credentials_error
    return result


def _write(p: Pass, failure: Exception | None, *, mark: bool) -> None:
    """The deferred patch, then what may only follow it."""
    try:
        p.persist()
    except Exception as problem:
        if failure is None:
            raise
        if isinstance(problem, Conflict):
            raise failure from problem  # outdated: the next pass reads the new one
        raise PassFailed(f"{failure}; then the status was not written: {problem}") from failure
    transitions(p)
    p.record(*p.later)
    if p.books is None or not mark:
        return
    for text in finished.mark(p.env.door, p.books.unread):
        log.warning("%s/%s: %s", p.owner.namespace, p.owner.name, text)
    if not p.let_go:
        show(p)
