"""Which credentials an object may use (credentials.md: Who may use an identity)."""

from collections.abc import Iterable
from dataclasses import dataclass

from captfctl.cluster.door import Door, find
from captfctl.model import keys
from captfctl.model.core import Secret
from captfctl.model.identity import TerraformClusterIdentity
from captfctl.model.meta import ObjectMeta
from captfctl.model.names import credentials_mirror
from captfctl.model.reasons import IdentityAllowed
from captfctl.model.resources import NAMESPACES, SECRETS, TERRAFORM_CLUSTER_IDENTITIES
from captfctl.model.terraform import IdentityKind, IdentityRef
from captfctl.reconcile.selectors import matches, matches_everything


@dataclass(frozen=True, slots=True)
class Identity:
    """A reference resolved for one object. `local`: a Secret of the object's own namespace."""

    name: str
    local: bool = False

    @classmethod
    def of(cls, ref: IdentityRef | None) -> "Identity":
        """What a reference names; an empty name for none."""
        if ref is None:
            return cls("")
        return cls(ref.name, ref.kind is IdentityKind.SECRET)

    @classmethod
    def in_use(
        cls, ref: IdentityRef | None, *, mutable: bool, records: Iterable[ObjectMeta]
    ) -> "Identity":
        """What an object's runs use. `records` is the metadata of those that it has, the applied
        one first: what is never changed in place keeps the credentials that it was made with."""
        for record in () if mutable else records:
            if name := record.annotations.get(keys.IDENTITY, ""):
                kind = record.annotations.get(keys.IDENTITY_KIND, "")
                return cls(name, kind == IdentityKind.SECRET)
        return cls.of(ref)

    @property
    def kind(self) -> str:
        """`Secret`, or empty for a `TerraformClusterIdentity`, as the records have it."""
        return IdentityKind.SECRET.value if self.local else ""

    @property
    def secret(self) -> str:
        """The Secret of the object's namespace that its Jobs get."""
        return self.name if self.local else credentials_mirror(self.name)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `IdentityAllowed` says. `source`: the Secret to use, when it may be used.

    `deleting`: its identity is being deleted. `gone`: identity or Secret no longer exist, and
    nobody took them from the object. `revoked`: a copy made earlier must go.
    """

    reason: IdentityAllowed
    message: str = ""
    source: Secret | None = None
    deleting: bool = False
    gone: bool = False
    revoked: bool = False


def _not_found(message: str, *, gone: bool = False) -> Verdict:
    return Verdict(IdentityAllowed.IDENTITY_NOT_FOUND, message, gone=gone)


def check(door: Door, identity: Identity, namespace: str) -> Verdict:
    """Read everything live. Raises the door's error for what is neither a yes nor a no."""
    if not identity.name:
        return _not_found("spec.identityRef names no identity")
    if identity.local:
        return _local(door, identity, namespace)
    found = find(door, TERRAFORM_CLUSTER_IDENTITIES, "", identity.name)
    if found is None:
        message = f"TerraformClusterIdentity {identity.name} does not exist"
        return _not_found(message, gone=True)
    if not allows(door, found, namespace):
        message = (
            f"TerraformClusterIdentity {identity.name} does not allow namespace {namespace}: "
            "see its spec.allowedNamespaces"
        )
        return Verdict(IdentityAllowed.NAMESPACE_NOT_ALLOWED, message, revoked=True)
    return _source(door, found)


def _local(door: Door, identity: Identity, namespace: str) -> Verdict:
    secret = find(door, SECRETS, namespace, identity.name)
    if secret is None:
        return _secret_missing(namespace, identity.name)
    return Verdict(IdentityAllowed.LOCAL_SECRET, source=secret)


def _secret_missing(namespace: str, name: str) -> Verdict:
    message = f"Secret {namespace}/{name} does not exist"
    return Verdict(IdentityAllowed.SECRET_NOT_FOUND, message, gone=True)


def allows(door: Door, identity: TerraformClusterIdentity, namespace: str) -> bool:
    """Whether objects of the namespace may use the identity."""
    allowed = identity.spec.allowed_namespaces
    if allowed is None:
        return False
    if namespace in allowed.names:
        return True
    if allowed.selector is None:
        return False
    if matches_everything(allowed.selector):
        return True
    found = find(door, NAMESPACES, "", namespace)
    if found is None:
        return False
    try:
        return matches(allowed.selector, found.metadata.labels)
    except ValueError:
        return False


def _source(door: Door, identity: TerraformClusterIdentity) -> Verdict:
    ref = identity.spec.secret_ref
    if ref is None:
        return _not_found(f"TerraformClusterIdentity {identity.metadata.name} names no Secret")
    secret = find(door, SECRETS, ref.namespace, ref.name)
    if secret is None:
        return _secret_missing(ref.namespace, ref.name)
    missing = missing_keys(identity, secret)
    if missing:
        message = f"Secret {ref.namespace}/{ref.name} lacks required keys: {', '.join(missing)}"
        return Verdict(IdentityAllowed.CREDENTIALS_INCOMPLETE, message)
    return Verdict(IdentityAllowed.IDENTITY_ALLOWED, source=secret, deleting=identity.deleting)


def missing_keys(identity: TerraformClusterIdentity, secret: Secret) -> list[str]:
    """The required keys that the Secret lacks, sorted; never a value."""
    return sorted(set(identity.spec.required_keys) - set(secret.data))
