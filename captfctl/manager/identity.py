"""The controller of `TerraformClusterIdentity`: its `Ready` and where it is used (30 §10.3)."""

from captfctl.clock import Clock
from captfctl.cluster.door import Door, find
from captfctl.controller import Result
from captfctl.manager.caches import BY_IDENTITY, Caches
from captfctl.model import keys
from captfctl.model.conditions import TRUE, Conditions, Type
from captfctl.model.events import EventReason
from captfctl.model.identity import TerraformClusterIdentity
from captfctl.model.meta import Condition
from captfctl.model.names import credentials_mirror
from captfctl.model.reasons import IdentityReady
from captfctl.model.resources import SECRETS, TERRAFORM_CLUSTER_IDENTITIES
from captfctl.reconcile import Recorder
from captfctl.reconcile.identity import missing_keys
from captfctl.reconcile.patch import document, merge_patch

CHECK_SECONDS = 300.0
CHECK_SECONDS_NOT_READY = 30.0
NAMESPACES_MAX = 1000


class IdentityReconciler:
    """Re-reads the source Secret; no user of it waits for this."""

    def __init__(self, door: Door, caches: Caches, clock: Clock, recorder: Recorder) -> None:
        self._door, self._caches = door, caches
        self._clock, self._recorder = clock, recorder

    def __call__(self, key: tuple[str, str]) -> Result:
        cached: TerraformClusterIdentity | None = self._caches.identities.get(*key)
        if cached is None or cached.deleting:
            return Result()
        identity = TERRAFORM_CLUSTER_IDENTITIES.copy(cached)
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
        ref = identity.spec.secret_ref
        secret = find(self._door, SECRETS, ref.namespace, ref.name) if ref else None
        where = f"{ref.namespace}/{ref.name}" if ref else "no Secret is named"
        if secret is None:
            return conditions.set_reason(IdentityReady.SECRET_NOT_FOUND, where)
        missing = missing_keys(identity, secret)
        if missing:
            text = f"Secret {where} lacks required keys: {', '.join(missing)}"
            return conditions.set_reason(IdentityReady.CREDENTIALS_INCOMPLETE, text)
        return conditions.set_reason(IdentityReady.SECRET_FOUND)

    def _namespaces(self, name: str) -> list[str]:
        """Where a copy of ours exists and an object uses the identity."""
        users = {
            namespace for namespace, _ in self._caches.clusters.keys_by_index(BY_IDENTITY, name)
        }
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
