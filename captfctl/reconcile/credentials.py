"""What a Job needs besides its inputs: credentials and rights
(credentials.md: Who may use an identity; credentials.md: The runner's rights)."""

import logging

from captfctl.errors import CaptfError
from captfctl.model.conditions import TRUE, Type
from captfctl.model.core import Secret
from captfctl.model.events import EventReason
from captfctl.model.meta import Condition
from captfctl.model.names import credentials_mirror
from captfctl.model.reasons import CredentialsMirrored, IdentityAllowed, RunnerRBACReady
from captfctl.reconcile import identity as identities
from captfctl.reconcile import local_secret, mirror, runner_rbac
from captfctl.reconcile.context import Pass
from captfctl.reconcile.identity import Identity
from captfctl.terraform.job.policy import service_account

ORDER = (Type.IDENTITY_ALLOWED, Type.CREDENTIALS_MIRRORED, Type.RUNNER_RBAC_READY)

log = logging.getLogger(__name__)


def prepare(p: Pass, identity: Identity) -> CaptfError | None:
    """Set the three conditions. What fails is given back, not raised: the object's Jobs then wait,
    and everything else of the pass goes on."""
    failed, rights = _identity(p, identity), _rights(p)
    return failed or rights


def _identity(p: Pass, identity: Identity) -> CaptfError | None:
    try:
        verdict = _verdict(p, identity)
    except CaptfError as problem:
        p.conditions.set_reason(IdentityAllowed.IDENTITY_CHECK_FAILED, str(problem))
        return problem
    p.conditions.set_reason(verdict.reason, verdict.message)
    _count_denial(p, verdict)
    return _mirror(p, identity, verdict)


def _verdict(p: Pass, identity: Identity) -> identities.Verdict:
    """Raises the door's error for what is neither a yes nor a no."""
    found = identities.check(p.env.door, identity, p.owner.namespace)
    if identity.local:
        return _of_the_namespace(p, identity, found)
    if not (found.deleting or found.gone):
        return found
    copy = mirror.existing(p.env.door, p.owner.namespace, identity.name)
    if p.deleting:
        return _with_the_copy(identity, found) if found.gone and copy is not None else found
    if found.deleting and not (copy is not None and mirror.serves(copy, p.owner)):
        return _deleting(f"TerraformClusterIdentity {identity.name}")
    return found


def _deleting(what: str) -> identities.Verdict:
    text = f"{what} is being deleted and serves no further objects"
    return identities.Verdict(IdentityAllowed.IDENTITY_DELETING, text)


def _of_the_namespace(p: Pass, identity: Identity, found: identities.Verdict) -> identities.Verdict:
    """A Secret of the namespace is kept while it is used, too."""
    secret = found.source
    if secret is None:
        return found
    deleted, created = secret.metadata.deletion_timestamp, p.obj.metadata.creation_timestamp
    if deleted is None:
        local_secret.keep(p.env.door, secret)
    elif not p.deleting and created is not None and created > deleted:
        return _deleting(f"Secret {p.owner.namespace}/{identity.name}")
    return found


def _with_the_copy(identity: Identity, found: identities.Verdict) -> identities.Verdict:
    """What was made with these credentials can still be destroyed with them."""
    text = f"{found.message}; the destroy uses the copy in Secret {identity.secret}"
    return identities.Verdict(IdentityAllowed.COPY_KEPT, text)


def leave_old_copies(p: Pass, identity: Identity) -> CaptfError | None:
    """Take the object off the copies of identities that it does not name any more.

    Only where none of its Jobs runs, and once the credentials that it names now are there: until
    then the old copy may be all that a corrected reference, or a destroy, has left to use. A copy
    that the namespace may not have any more goes in any case.
    """
    kept = "" if identity.local else identity.name
    mirrored = p.conditions[Type.CREDENTIALS_MIRRORED]
    ready = mirrored is not None and mirrored.status == TRUE
    try:
        for name in p.env.cache.copied_identities(p.owner):
            if name == kept:
                continue
            if ready:
                leave_copy(p, name)
            elif identities.check(p.env.door, Identity(name), p.owner.namespace).revoked:
                _revoke(p, name, "it may not be used here any more")
    except CaptfError as problem:  # also a conflict: another user came or went
        return problem
    return None


def leave_copy(p: Pass, name: str) -> None:
    """Take the object off one copy, which goes with its last user. Raises `Conflict`."""
    if mirror.drop_user(p.env.door, name, p.owner):
        secret = credentials_mirror(name)
        text = f"Secret {secret} removed with the last user of identity {name}"
        p.record(EventReason.MIRROR_REMOVED.says(text))


def missing(p: Pass) -> Condition | None:
    """The first of the conditions that keeps a Job from starting; None when none does."""
    for kind in ORDER:
        found = p.conditions[kind]
        assert found is not None  # `prepare` sets each, or an earlier one that is not True
        if found.status != TRUE:
            return found
    return None


def _count_denial(p: Pass, verdict: identities.Verdict) -> None:
    old = p.condition_before(Type.IDENTITY_ALLOWED)
    if verdict.reason.metric and (old is None or old.reason != verdict.reason):
        p.env.metrics.identity_denied(verdict.reason.metric)


def _mirror(p: Pass, identity: Identity, verdict: identities.Verdict) -> CaptfError | None:
    try:
        if verdict.source is not None:
            _bring_up_to_date(p, identity, verdict.source)
        elif verdict.reason is IdentityAllowed.COPY_KEPT:
            p.conditions.set_reason(CredentialsMirrored.MIRRORED, verdict.message)
        else:
            _nothing_to_copy(p, identity, verdict)
    except mirror.ForeignMirror as problem:
        p.conditions.set_reason(CredentialsMirrored.MIRROR_FAILED, str(problem))
    except CaptfError as problem:
        p.conditions.set_reason(CredentialsMirrored.MIRROR_FAILED, str(problem))
        return problem
    return None


def _nothing_to_copy(p: Pass, identity: Identity, verdict: identities.Verdict) -> None:
    if verdict.revoked:
        _revoke(p, identity.name, verdict.reason)
    text = f"no credentials to copy: {verdict.reason}"
    p.conditions.set_reason(CredentialsMirrored.MIRROR_PENDING, text)


def _revoke(p: Pass, name: str, why: str) -> None:
    if mirror.revoke(p.env.door, p.owner.namespace, name):
        p.record(EventReason.MIRROR_REMOVED.says(f"copy of identity {name} removed: {why}"))


def _bring_up_to_date(p: Pass, identity: Identity, source: Secret) -> None:
    if not identity.local:
        seen = p.env.cache.secret(p.owner.namespace, identity.secret)
        if seen is not None and mirror.is_up_to_date(seen, identity.name, source, p.owner):
            p.conditions.set_reason(CredentialsMirrored.MIRRORED)
            return
        done = mirror.ensure(p.env.door, identity.name, source, p.owner)
        if done.created:
            text = f"identity {identity.name} copied to Secret {identity.secret}"
            p.record(EventReason.MIRROR_CREATED.says(text))
        if done.repaired:
            text = f"Secret {identity.secret} named an earlier object of this name as its user"
            p.record(EventReason.OWNER_REFERENCES_REPAIRED.says(text))
    p.conditions.set_reason(CredentialsMirrored.MIRRORED)


def _rights(p: Pass) -> CaptfError | None:
    account = service_account(p.policy)
    try:
        refusal = runner_rbac.ensure(p.env.door, p.env.cache, p.owner.namespace, account)
    except CaptfError as problem:
        p.conditions.set_reason(RunnerRBACReady.RBAC_FAILED, str(problem))
        return problem
    p.set(Type.RUNNER_RBAC_READY, refusal or RunnerRBACReady.RBAC_READY.says())
    return None
