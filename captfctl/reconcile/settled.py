"""Objects that need nothing: told from the caches, without a live read
(reconcile.md: Objects at rest).

A pass is a function of what it reads and of the time. A pass that finds nothing to do leaves a
fingerprint of the versions of everything it depends on in `status.settled`, with the time when
something is due. While the caches show the same versions and nothing is due, a pass has nothing to
do either: it ends before it reads anything. This also holds for the first pass of a new manager.

The fingerprint is taken from the caches before the pass reads anything live. So it never names
a version that the pass did not know: where a cache was behind, the next pass is a full one.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec.structs import replace

from captfctl.cluster.door import Door
from captfctl.decide.duration import Nanoseconds
from captfctl.model import keys
from captfctl.model.core import Job
from captfctl.model.owner import Owner
from captfctl.model.status import Settled
from captfctl.model.terraform import JobPolicy, TerraformObject
from captfctl.reconcile.cache import CacheReader, version
from captfctl.reconcile.context import Pass
from captfctl.reconcile.identity import Identity
from captfctl.reconcile.kinds import KindRules, effective
from captfctl.reconcile.known import Ended
from captfctl.reconcile.runner_rbac import BINDING
from captfctl.runs.jobs import is_bookkept, is_finished
from captfctl.settings import PassSettings
from captfctl.terraform.contract.effective import Config
from captfctl.terraform.contract.variables import source_refs
from captfctl.terraform.job.policy import service_account
from captfctl.terraform.state.record_store import applied_name, attempt_name
from captfctl.version import VERSION
from runner import wire

_FORMAT = "1"
_SECOND = 1_000_000_000
_SETTINGS = tuple(field.name for field in fields(PassSettings))
"""Not what else a manager was started with: its name changes with every start."""


class Unseen(Exception):
    """Something that the object depends on is not in the caches, so a pass has to read it."""


def observe(
    door: Door,
    cache: CacheReader,
    settings: PassSettings,
    rules: KindRules,
    owner: Owner,
    jobs: Iterable[Job],
) -> bytes | None:
    """The versions of all that a pass of the object depends on, besides itself, as they are cached
    now.

    None: something runs, was not read yet, or cannot be seen in the caches.
    """
    obj = rules.obj
    if obj.deleting or obj.status.active_job is not None:
        return None
    if keys.BLOCK_MOVE in obj.metadata.annotations:
        return None
    try:
        parts = _parts(door, cache, settings, rules, owner, jobs)
        chosen = [getattr(settings, name) for name in _SETTINGS]
        return msgspec.json.encode([_FORMAT, VERSION, *chosen, *parts])
    except Unseen:
        return None


def is_resting(rules: KindRules, observed: bytes | None, now: datetime) -> bool:
    """Whether nothing changed since the pass that left `status.settled`, and nothing is due."""
    left = rules.obj.status.settled
    if observed is None or left is None or (left.until is not None and left.until <= now):
        return False
    return left.fingerprint == _fingerprint(observed, rules)


def requeue(obj: TerraformObject, now: datetime) -> timedelta:
    """The time until something is due for a resting object; zero: not before a change."""
    left = obj.status.settled
    return left.until - now if left is not None and left.until is not None else timedelta(0)


def leave(p: Pass, ended: Ended, observed: bytes | None) -> None:
    """Leave on the object, before it is written, what the next pass needs to see that it has
    nothing to do."""
    known = ended.known
    state = known.state.state if known.state is not None else None
    if observed is None or ended.idle is None or state is None:
        return
    p.obj.status.conditions = p.conditions.list()
    p.obj.status.settled = Settled(
        fingerprint=_fingerprint(observed, p.rules),
        until=_until(p.now, ended.idle),
        state_resources=state.resources,
        state_bytes=state.bytes,
        inputs_bytes=known.inputs_bytes,
    )


def _until(now: datetime, wait: Nanoseconds) -> datetime | None:
    """In whole seconds, rounded up: two passes that wait for the same moment write the same."""
    if not wait:
        return None
    micros = (now - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
    return datetime.fromtimestamp(-(-(micros * 1000 + wait) // _SECOND), UTC)


def _fingerprint(observed: bytes, rules: KindRules) -> str:
    """Of the object, everything counts but its version and what an earlier pass left here."""
    obj = rules.obj
    bare = replace(
        obj,
        metadata=replace(obj.metadata, resource_version=""),
        status=replace(obj.status, settled=None),
    )
    digest = hashlib.sha256(observed)
    digest.update(rules.resource.encode(bare))
    return digest.hexdigest()[:32]


def _parts(
    door: Door,
    cache: CacheReader,
    settings: PassSettings,
    rules: KindRules,
    owner: Owner,
    jobs: Iterable[Job],
) -> Iterator[object]:
    yield from map(_job, sorted(jobs, key=lambda job: job.metadata.name))
    yield from _secrets(cache, owner)
    if rules.keeps_plans:
        yield sorted(map(version, (plan.metadata for plan in cache.plans(owner))))
    yield from _credentials(cache, rules, effective(rules, settings), owner)
    yield from _variables(cache, rules.obj, owner)
    yield _belongings(rules, door)  # may ask the server, so it comes last


def _belongings(rules: KindRules, door: Door) -> object:
    found = rules.depends_on(door)
    if found is None:
        raise Unseen
    return found


def _job(job: Job) -> object:
    if not (is_finished(job) and is_bookkept(job)):
        raise Unseen
    return job.metadata.name, job.metadata.uid


def _secrets(cache: CacheReader, owner: Owner) -> Iterator[object]:
    """State, records and the state lock."""
    yield from map(version, (secret.metadata for secret in cache.state_secrets(owner)))
    for name in (attempt_name(owner), applied_name(owner)):
        record = cache.secret(owner.namespace, name)
        yield record and version(record.metadata)
    if cache.secret(owner.namespace, wire.kept_secret(owner.suffix)) is not None:
        raise Unseen  # a state that is not stored: a pass has to deal with it
    lock = cache.state_lock(owner)
    yield lock and (lock.spec.holder_identity, lock.metadata.annotations.get(keys.LOCK_INFO))


def _credentials(
    cache: CacheReader, rules: KindRules, config: Config, owner: Owner
) -> Iterator[object]:
    """What the identity's Secret holds is watched by the identity's own controller, which tells
    its version. A Secret of the object's own namespace is not in the caches."""
    identity = _identity(cache, rules, config, owner)
    found = cache.identity(identity.name)
    if identity.local or found is None or not found.status.secret_version:
        raise Unseen
    status = found.status
    yield found.metadata.uid, found.metadata.deletion_timestamp, found.spec
    yield status.secret_version, [(c.type, c.status, c.reason) for c in status.conditions]
    namespace = cache.namespace(owner.namespace)
    if namespace is None:
        raise Unseen
    yield namespace.metadata.labels, namespace.metadata.deletion_timestamp
    yield _copy(cache, identity, owner)
    yield _rights(cache, config.jobs, owner)
    yield sorted(cache.copied_identities(owner))


def _identity(cache: CacheReader, rules: KindRules, config: Config, owner: Owner) -> Identity:
    shown = (cache.secret(owner.namespace, name(owner)) for name in (applied_name, attempt_name))
    metas = (record.metadata for record in shown if record is not None)
    return Identity.in_use(config.identity, mutable=rules.mutable, records=metas)


def _copy(cache: CacheReader, identity: Identity, owner: Owner) -> object:
    """Not its version: that moves with each user that comes or goes."""
    copy = cache.secret(owner.namespace, identity.secret)
    if copy is None:
        raise Unseen
    meta = copy.metadata
    ours = any(reference.uid == owner.uid for reference in meta.owner_references)
    return meta.uid, meta.labels, meta.annotations, ours


def _rights(cache: CacheReader, policy: JobPolicy, owner: Owner) -> object:
    name = service_account(policy)
    account = cache.service_account(owner.namespace, name)
    binding = cache.role_binding(owner.namespace, BINDING)
    if account is None or binding is None:
        raise Unseen
    subjects = [subject for subject in binding.subjects if subject.name == name]
    return account.metadata.uid, binding.metadata.uid, binding.role_ref, subjects


def _variables(cache: CacheReader, obj: TerraformObject, owner: Owner) -> Iterator[object]:
    """Sources without the label by which they are watched are read in every pass."""
    for ref in source_refs(obj.spec.variables_from):
        source = cache.variables(ref.kind, owner.namespace, ref.name)
        if source is None:
            raise Unseen
        yield ref.kind, version(source.metadata)
