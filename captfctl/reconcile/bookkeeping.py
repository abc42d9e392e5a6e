"""Finished Jobs, read once: what they say about the object (runs.md: Bookkeeping)."""

from captfctl.model.conditions import Type
from captfctl.model.status import SourceStatus
from captfctl.reconcile import restore
from captfctl.reconcile.context import Pass
from captfctl.reconcile.known import Found, Known
from captfctl.terraform.books.bookkeeping import Bookkeeping, BooksInput, keep_books
from captfctl.terraform.state.records import Records
from runner import wire


def keep(p: Pass, found: Found) -> Known:
    """Read, count and prune; set the conditions that follow, except `ApplyJobSucceeded`, which is
    decided at the end of the pass."""
    books = keep_books(p.env.door, found.jobs, p.env.leases, _given(p, found))
    p.record(*books.notes)
    for run in books.counted:
        p.env.metrics.run_finished(p.kind, run)
    for kind, value in (
        (Type.DRIFT_JOB_SUCCEEDED, books.drift_job_condition),
        (Type.DRIFT_DETECTED, books.drift_condition),
        (Type.RESTORE_JOB_SUCCEEDED, books.restore_condition),
    ):
        if value is not None:
            p.set(kind, value)
    if books.drop_restore_condition:
        p.conditions.remove(Type.RESTORE_JOB_SUCCEEDED)
    _status(p, books)
    restore.consume(p, books)
    return Known(
        books=books,
        records=books.records,
        identity=found.identity,
        plans=found.plans,
        inputs_bytes=_size(found.records),
    )


def _size(records: Records) -> int:
    record = records.attempt or records.applied
    return sum(len(data) for data in record.files.values()) if record else 0


def _given(p: Pass, found: Found) -> BooksInput:
    return BooksInput(
        owner=p.owner,
        status=p.obj.status,
        records=found.records,
        policy=p.policy,
        drift_action=p.config.drift_action,
        deleting=p.deleting,
        paused=p.paused,
        lock=found.lock,
        inputs_key=p.rules.counted_by,
        plans=found.plans,
        plans_kept=p.rules.keeps_plans,
        manual=p.config.manual_apply,
        unsaved_shown=p.env.cache.secret(p.owner.namespace, wire.kept_secret(p.owner.suffix))
        is not None,
    )


def _status(p: Pass, books: Bookkeeping) -> None:
    status = p.obj.status
    status.last_refresh = books.last_refresh
    status.last_drift_check = books.last_drift_check
    if books.last_run is not None:
        status.last_run = books.last_run
    status.source = _source(p, books)


def _source(p: Pass, books: Bookkeeping) -> SourceStatus | None:
    """What the newest run says it used, and the digest that the last successful apply ran."""
    source = p.obj.status.source or SourceStatus()
    source.image = books.source_image or source.image
    source.runtime_version = books.runtime_version or source.runtime_version
    source.image_digest = books.records.applied.digest if books.records.applied else ""
    return source if source != SourceStatus() else None
