"""The controller of `TerraformClusterIdentity`: what keeps it, its `Ready`, and where it is used.

See credentials.md: Deleting an identity; credentials.md: The identity controller.
"""

from captfctl.clock import Clock
from captfctl.cluster.door import Door, find
from captfctl.controller import Result
from captfctl.manager.caches import (
    BY_COPY,
    BY_IDENTITY,
    BY_LOCAL_SECRET,
    Caches,
    local_secrets,
)
from captfctl.model import keys
from captfctl.model.conditions import TRUE, Conditions, Type
from captfctl.model.events import EventReason
from captfctl.model.identity import TerraformClusterIdentity
from captfctl.model.meta import Condition
from captfctl.model.names import credentials_mirror
from captfctl.model.reasons import IdentityReady
from captfctl.model.resources import SECRETS, TERRAFORM_CLUSTER_IDENTITIES
from captfctl.reconcile import local_secret
from captfctl.reconcile.events import Recorder
from captfctl.reconcile.identity import missing_keys
from captfctl.reconcile.patch import document, merge_patch

CHECK_SECONDS = 300.0
CHECK_SECONDS_NOT_READY = 30.0
NAMESPACES_MAX = 1000
_USERS_TOLD = 10


class IdentityReconciler:
    """Re-reads the source Secret; no user of it waits for this."""

    def __init__(self, door: Door, caches: Caches, clock: Clock, recorder: Recorder) -> None:
        self._door, self._caches = door, caches
        self._clock, self._recorder = clock, recorder

    def __call__(self, key: tuple[str, str]) -> Result:
        namespace, _ = key
        return self._release_unused(key) if namespace else self._reconcile(key)

    def _release_unused(self, key: tuple[str, str]) -> Result:
        """Let a Secret go that no object of its namespace names as its identity any more."""
        secret = self._caches.local_secrets.get(*key)
        namespace, name = key
        wanted = f"{namespace}/{name}"
        own = self._caches.own.values()
        if secret is None or any(kind.keys_by_index(BY_LOCAL_SECRET, wanted) for kind in own):
            return Result()
        # Another manager may serve some of the namespace's objects, and the cache may be late.
        users = (user for kind in own for user in self._door.list(kind.resource, namespace).items)
        if not any(wanted in local_secrets(user) for user in users):
            local_secret.release(self._door, secret)
        return Result(CHECK_SECONDS)

    def _reconcile(self, key: tuple[str, str]) -> Result:
        cached: TerraformClusterIdentity | None = self._caches.identities.get(*key)
        if cached is None:
            return Result()
        copied = TERRAFORM_CLUSTER_IDENTITIES.copy(cached)
        identity = self._protect(copied, self._used(copied))
        if identity is None:
            return Result()
        before = document(identity)
        old = list(identity.status.conditions)
        conditions = Conditions(old, self._clock.now(), identity.metadata.generation)
        ready = self._check(identity, conditions)
        identity.status.conditions = conditions.list()
        identity.status.namespaces = self._namespaces(identity.metadata.name)
        identity.status.observed_generation = identity.metadata.generation
        self._write(identity, before)
        self._tell(identity, old, ready)
        return Result(CHECK_SECONDS if ready.status == TRUE else CHECK_SECONDS_NOT_READY)

    def _check(self, identity: TerraformClusterIdentity, conditions: Conditions) -> Condition:
        if identity.deleting:
            return conditions.set_reason(
                IdentityReady.IN_USE, self._told_users(identity.metadata.name)
            )
        ref = identity.spec.secret_ref
        secret = find(self._door, SECRETS, ref.namespace, ref.name) if ref else None
        identity.status.secret_version = secret.metadata.resource_version if secret else ""
        where = f"{ref.namespace}/{ref.name}" if ref else "no Secret is named"
        if secret is None:
            return conditions.set_reason(IdentityReady.SECRET_NOT_FOUND, where)
        missing = missing_keys(identity, secret)
        if missing:
            text = f"Secret {where} lacks required keys: {', '.join(missing)}"
            return conditions.set_reason(IdentityReady.CREDENTIALS_INCOMPLETE, text)
        return conditions.set_reason(IdentityReady.SECRET_FOUND)

    def _used(self, identity: TerraformClusterIdentity) -> bool:
        """Whether a copy of its credentials exists; every user has one.

        Before the finalizer goes, all namespaces are asked: another manager may serve some of them,
        and the cache may be late.
        """
        name, meta = identity.metadata.name, identity.metadata
        if self._caches.secrets.by_index(BY_COPY, name):
            return True
        if keys.IDENTITY_PROTECTION not in meta.finalizers:
            return False
        marked = f"{keys.MIRRORED}={keys.TRUE}"
        copies = self._door.list(SECRETS.metadata_only(), labels=marked).items
        return any(copy.metadata.annotations.get(keys.IDENTITY) == name for copy in copies)

    def _protect(
        self, identity: TerraformClusterIdentity, used: bool
    ) -> TerraformClusterIdentity | None:
        """Keep the identity while it is used, as a claim is kept while a pod uses it. None: it is
        gone, or only waits for somebody else."""
        meta = identity.metadata
        protected = keys.IDENTITY_PROTECTION in meta.finalizers
        wanted = [name for name in meta.finalizers if name != keys.IDENTITY_PROTECTION]
        if used:
            wanted.append(keys.IDENTITY_PROTECTION)
        if protected != used and not (used and identity.deleting):
            patch = {"metadata": {"finalizers": wanted}}
            identity = self._door.patch(
                TERRAFORM_CLUSTER_IDENTITIES,
                meta.name,
                "",
                patch,
                resource_version=meta.resource_version,
            )
        return None if identity.deleting and not used else identity

    def _told_users(self, name: str) -> str:
        """The objects that keep the identity, as far as this manager knows them."""
        users = sorted(self._users(name))
        listed = ", ".join(f"{kind} {space}/{user}" for kind, space, user in users[:_USERS_TOLD])
        more = len(users) - _USERS_TOLD
        told = f"{listed} and {more} more" if more > 0 else listed
        return f"being deleted; used by {told}" if told else "being deleted"

    def _users(self, name: str) -> set[tuple[str, str, str]]:
        """Kind, namespace and name of those that name the identity, and of those that own a copy
        of it: they may inherit it."""
        named = {
            (kind, *key)
            for kind, own in self._caches.own.items()
            for key in own.keys_by_index(BY_IDENTITY, name)
        }
        owners = {
            (ref.kind, copy.metadata.namespace, ref.name)
            for copy in self._caches.secrets.by_index(BY_COPY, name)
            for ref in copy.metadata.owner_references
            if ref.kind in self._caches.own
        }
        return named | owners

    def _namespaces(self, name: str) -> list[str]:
        """Where a copy of ours exists and an object uses the identity."""
        users = {namespace for _, namespace, _ in self._users(name)}
        mirror = credentials_mirror(name)
        found = [namespace for namespace in users if self._has_mirror(namespace, mirror, name)]
        return sorted(found)[:NAMESPACES_MAX]

    def _has_mirror(self, namespace: str, mirror: str, identity: str) -> bool:
        secret = self._caches.secrets.get(namespace, mirror)
        if secret is None or secret.metadata.labels.get(keys.MIRRORED) != keys.TRUE:
            return False
        named: str | None = secret.metadata.annotations.get(keys.IDENTITY)
        return named == identity

    def _write(self, identity: TerraformClusterIdentity, before: dict[str, object]) -> None:
        patch = merge_patch(before, document(identity))
        if not patch:
            return
        self._door.patch(
            TERRAFORM_CLUSTER_IDENTITIES,
            identity.metadata.name,
            "",
            patch,
            resource_version=identity.metadata.resource_version,
            subresource="status",
        )

    def _tell(
        self, identity: TerraformClusterIdentity, old: list[Condition], ready: Condition
    ) -> None:
        before = next((c.reason for c in old if c.type == Type.READY), "")
        if before == ready.reason:
            return
        identity.api_version = TERRAFORM_CLUSTER_IDENTITIES.api_version
        identity.kind = TERRAFORM_CLUSTER_IDENTITIES.kind
        if ready.reason == IdentityReady.SECRET_NOT_FOUND:
            text = f"Secret {ready.message} does not exist"
            note = EventReason.IDENTITY_SECRET_NOT_FOUND.says(text)
            self._recorder.record(identity, note)
        elif before == IdentityReady.SECRET_NOT_FOUND:
            note = EventReason.IDENTITY_SECRET_FOUND.says("the Secret exists now")
            self._recorder.record(identity, note)
