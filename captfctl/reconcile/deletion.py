"""What a deleting object checks before its state is read (deletion.md: Order of a deletion)."""

from captfctl.decide import constants
from captfctl.install.deletion_protection import how_to_unprotect
from captfctl.model.events import EventReason
from captfctl.model.ops import Op
from captfctl.model.reasons import Deleting, DeletionBlocked, StateReadable
from captfctl.model.terraform import DeletionPolicy
from captfctl.reconcile import cleanup
from captfctl.reconcile.context import Pass
from captfctl.reconcile.finish import finish
from captfctl.reconcile.known import Ended, Known, StateView
from captfctl.reconcile.retain import adopt_retained, drop_own_label, retained_uid
from captfctl.terraform.state.reader import State, Unreadable


def is_destroyed(known: Known) -> bool:
    """Whether a destroy succeeded, which is final, whatever was changed since."""
    newest = known.books.newest(Op.DESTROY, Op.APPLY)
    return newest is not None and newest.op is Op.DESTROY and newest.ok


def is_stopped(p: Pass) -> bool:
    """Whether nothing may be destroyed or released yet, whatever the state is."""
    if p.config.deletion_protection:
        p.conditions.set_reason(Deleting.DELETION_PROTECTED, _protected(p))
        return True
    blocking = p.rules.dependents(p.env.door)
    if blocking:
        p.conditions.set_reason(DeletionBlocked.DEPENDENTS_EXIST, blocking)
        return True
    p.conditions.set_reason(DeletionBlocked.NOT_BLOCKED)
    return False


def _protected(p: Pass) -> str:
    meta = p.obj.metadata
    whence = "" if p.obj.spec.deletion_protection else ", inherited from the TerraformCluster"
    return (
        f"spec.deletionProtection is true{whence}: nothing is destroyed. To let the deletion go "
        f"on: {how_to_unprotect(p.rules.resource.plural, meta.namespace, meta.name)}"
    )


def policy_gate(p: Pass, known: Known, view: StateView) -> Ended | None:
    """A policy that would be inherited and cannot be found is not guessed; None: go on. Where
    nothing was ever created there is nothing to keep or to destroy."""
    if not p.deleting or p.config.deletion_policy is not None:
        return None
    if known.restore.backup is not None:
        return None  # a restore destroys nothing
    if not (view.exists or view.held or known.books.unsaved):
        return None
    text = (
        "spec.deletionPolicy is not set and the TerraformCluster to inherit it from cannot be "
        "found: set it to Destroy or Retain"
    )
    p.conditions.set_reason(Deleting.DELETION_POLICY_UNRESOLVED, text)
    return finish(p, known, constants.GATE_REQUEUE)


def retaining(p: Pass) -> bool:
    """Whether the object is being deleted and its infrastructure is kept."""
    return p.deleting and p.config.deletion_policy is DeletionPolicy.RETAIN


def retained_state(p: Pass, known: Known, found: State | Unreadable) -> Ended | None:
    """What an earlier object of the name kept is not ours to read, unless we are told to adopt it
    (state.md: Retained state). None: nothing of the kind."""
    uid = retained_uid(p, known.records, found)
    if not uid:
        if not retaining(p):
            drop_own_label(p, known.records, found)
        return None
    if p.obj.spec.adopt_retained_state:
        count = adopt_retained(p)
        text = f"{count} Secrets kept by the earlier object {uid} now belong to this one"
        p.record(EventReason.RETAINED_STATE_ADOPTED.says(text))
        return finish(p, known, constants.LAG_REQUEUE)
    if p.deleting:
        return cleanup.released(p, known, uid)
    p.conditions.set_reason(
        StateReadable.RETAINED_STATE_FOUND,
        f"Secrets of this object's names were kept by an earlier object, UID {uid}: set "
        "spec.adoptRetainedState to take them over, or delete those Secrets to start afresh",
    )
    return finish(p, known, constants.STATE_REQUEUE)
