"""What a decided operation renders, on which image, under which name
(reconcile.md: What each operation renders)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from captfctl.decide import Reason
from captfctl.model import keys
from captfctl.model.meta import seconds_stamp
from captfctl.model.ops import Op
from captfctl.model.terraform import IdentityKind
from captfctl.reconcile import inputs
from captfctl.reconcile.context import Pass
from captfctl.reconcile.finish import first_apply_unfinished, last_apply_failed
from captfctl.reconcile.images import Images, choose, fallback_image
from captfctl.reconcile.known import Decided, Inputs, Known
from captfctl.runs.jobs import next_attempt
from captfctl.terraform.contract.render import render, render_restore
from captfctl.terraform.job.run import RestoreSource, RunSpec
from captfctl.terraform.state.records import Record, unpullable_images


@dataclass(frozen=True, slots=True)
class Rendered:
    """A run ready to be started. `record` is what a destroy was rendered from, if anything.
    `leased_at`: when taking its leases was begun, on the clock that never goes back."""

    run: RunSpec
    images: Images
    record: Record | None = None
    leased_at: float = -math.inf


def render_run(p: Pass, decided: Decided, op: Op) -> Rendered | None:
    """None: there is nothing to render from. Raises `InputsTooLarge` and `ContractError`."""
    if op in (Op.APPLY, Op.PLAN):
        return _current(p, decided, op)
    if op is Op.RESTORE:
        return _restore(p, decided)
    return _of_state(p, decided, op)


@dataclass(frozen=True, slots=True)
class _Rendering:
    files: Mapping[str, bytes]
    inputs_hash: str
    image: str


def _current(p: Pass, decided: Decided, op: Op) -> Rendered | None:
    decision, known = decided.decision, decided.known
    found = _to_apply(p, known)
    if found is None:
        return None
    remediation = decision.reason is Reason.DRIFT_REMEDIATION
    stamp = seconds_stamp(p.obj.status.last_drift_check)
    applies = op is Op.APPLY
    begins = decision.reason is Reason.NO_STATE and known.records.attempt is None
    guard = known.inputs.guard if applies and known.inputs.guarded else None
    run = replace(
        _run(
            p,
            decided,
            op,
            found.files,
            Images(found.image),
            inputs_hash=found.inputs_hash,
            tick=f"remediate/{stamp}" if remediation else "",
        ),
        plan=decision.plan,
        expect_plan=decision.expect_plan,
        allow_deletes=decision.allow_deletes,
        approval_hash=guard.approval_hash if guard else "",
        exports_hash=guard.exports_hash if guard else "",
        drift_remediation=applies and remediation,
        after_failed_apply=applies and last_apply_failed(known),
        after_interrupted_apply=known.records.marks.interrupted_apply if applies else "",
        first_apply=applies and begins,
        unguarded=applies and first_apply_unfinished(p, known),
        extra_annotations=_counted(p, known),
    )
    return Rendered(run, Images(found.image))


def _to_apply(p: Pass, known: Known) -> _Rendering | None:
    """The current inputs. Of what is never changed in place none are built once it is there: its
    record is applied again."""
    files = _files(known.inputs)
    if files is not None:
        return _Rendering(files, known.inputs.hash, p.obj.spec.source.image)
    record = known.records.applied or known.records.attempt
    if p.rules.mutable or record is None:
        return None
    return _Rendering(record.files, record.inputs_hash, record.image)


def _of_state(p: Pass, decided: Decided, op: Op) -> Rendered | None:
    """A run that works with what was applied. A destroy takes the record, not current wishes."""
    known, state_hash = decided.known, decided.state.inputs_hash
    record = known.records.for_run(state_hash)
    files = _files_for(p, known, op, record)
    if files is None:
        return None
    images = choose(
        record, fallback_image(p.obj, known.records, op), unpullable_images(known.records, p.now)
    )
    last = {Op.REFRESH: p.obj.status.last_refresh, Op.DRIFT: p.obj.status.last_drift_check}.get(op)
    run = _run(p, decided, op, files, images, inputs_hash=state_hash, tick=seconds_stamp(last))
    return Rendered(run, images, record if op is Op.DESTROY else None)


def _restore(p: Pass, decided: Decided) -> Rendered | None:
    """A root with a backend and nothing else, on the image that was applied."""
    known, backup = decided.known, decided.known.restore.backup
    if backup is None:
        return None
    images = choose(
        known.records.applied or known.records.attempt,
        fallback_image(p.obj, known.records, Op.RESTORE),
        unpullable_images(known.records, p.now),
    )
    source = RestoreSource(
        serial=backup.serial,
        backup=backup.name,
        secrets=backup.secret_names,
        resources=backup.resources,
    )
    run = _run(
        p,
        decided,
        Op.RESTORE,
        render_restore().data(),
        images,
        inputs_hash=backup.inputs_hash,
        tick=f"restore/{backup.name}",
    )
    return Rendered(replace(run, restore=source), images)


def _files_for(p: Pass, known: Known, op: Op, record: Record | None) -> Mapping[str, bytes] | None:
    if op is not Op.DESTROY and p.rules.mutable:
        return _files(known.inputs)
    if record is not None:
        return record.files
    if op is not Op.DESTROY:
        return None
    return _files(inputs.build_for_destroy(p, known.records))


def _files(built: Inputs) -> Mapping[str, bytes] | None:
    if built.values is None:
        return None
    return render(built.values, built.variables).data()


def _run(
    p: Pass,
    decided: Decided,
    op: Op,
    files: Mapping[str, bytes],
    images: Images,
    *,
    inputs_hash: str,
    tick: str,
) -> RunSpec:
    """What every run has: its operation's own fields are for the caller to add."""
    policy = p.obj.spec.source.image_pull_policy
    known, has_state = decided.known, decided.state.exists
    lock = known.books.lock
    stale = lock.force_unlock if lock is not None else ""
    return RunSpec(
        owner=p.owner,
        op=op,
        attempt=next_attempt(known.books.jobs, op.value),
        inputs_hash=inputs_hash,
        image=images.image,
        files=files,
        credentials_secret=known.identity.secret,
        tick=tick,
        image_pull_policy=policy.value if policy else "",
        fallback_images=images.fallbacks,
        policy=p.policy,
        identity=known.identity.name,
        identity_kind=IdentityKind.SECRET if known.identity.local else None,
        force_unlock=stale if has_state else "",
        lock_to_remove="" if has_state else stale,
        state_lock_version=lock.version if lock is not None else "",
        unsaved=known.books.unsaved.secrets,
        generation=p.obj.metadata.generation,
    )


def _counted(p: Pass, known: Known) -> dict[str, str]:
    """By what failures of an apply or plan are counted, where that is not its inputs hash."""
    if p.rules.counted_by == keys.INPUTS_HASH:
        return {}
    return {p.rules.counted_by: known.inputs.counted_hash}
