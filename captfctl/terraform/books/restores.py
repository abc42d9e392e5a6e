"""Finished restores, each consumed once (runs.md: Records of finished applies)."""

from collections.abc import Sequence
from dataclasses import dataclass

from captfctl.model import keys
from captfctl.model.conditions import ConditionValue, Type, find
from captfctl.model.meta import Condition
from captfctl.model.ops import Op
from captfctl.model.reasons import RestoreJobSucceeded, WaitReason
from captfctl.terraform.books.apply_condition import failure_detail
from captfctl.terraform.books.results import FinishedRun
from captfctl.terraform.books.runs import Runs


@dataclass(frozen=True, slots=True)
class Restored:
    """A restore that ended and was not consumed yet: `status.lastRestoredSerial` becomes `serial`
    whatever came of it, and only success takes the request's annotation away."""

    job: str
    serial: int
    ok: bool


def _serial(run: FinishedRun) -> int:
    text = run.job.metadata.annotations.get(keys.RESTORE_SERIAL, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def restored(runs: Runs) -> Restored | None:
    """The newest restore, if this pass reads it."""
    run = runs.newest(Op.RESTORE)
    if run is None or run.bookkept or not _serial(run):
        return None
    return Restored(run.name, _serial(run), run.ok)


def restore_condition(runs: Runs) -> ConditionValue | None:
    """`RestoreJobSucceeded` of a restore that this pass reads; None leaves it."""
    run = runs.newest(Op.RESTORE)
    if run is None or run.bookkept:
        return None
    serial = _serial(run)
    if run.ok:
        return RestoreJobSucceeded.STATE_RESTORED.says(
            f"Job {run.name}: serial {serial} is restored"
        )
    detail = ": ended by its deadline" if run.deadline else failure_detail(run) or ": it failed"
    return failed_once(f"Job {run.name}{detail}", serial)


def failed_once(why: str, serial: int) -> ConditionValue:
    """A restore failed, and how to have it tried again."""
    return RestoreJobSucceeded.RESTORE_FAILED.says(
        f"{why}; serial {serial} is not tried again while the annotation "
        f"{keys.RESTORE_STATE} names it: remove it, wait until status.lastRestoredSerial is gone, "
        "then set it again",
    )


def drop_restore_condition(runs: Runs, conditions: Sequence[Condition]) -> bool:
    """Whether a wait is left over that no restore Job came of (decision.md: Order of the rules)."""
    found = find(conditions, Type.RESTORE_JOB_SUCCEEDED)
    return (
        found is not None and found.reason in list(WaitReason) and runs.newest(Op.RESTORE) is None
    )
