"""The ServiceAccount that Jobs run as, and its rights in the namespace
(credentials.md: The runner's rights)."""

from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import AlreadyExists
from captfctl.cluster.retry import retry_on_conflict
from captfctl.model import keys
from captfctl.model.conditions import ConditionValue
from captfctl.model.core import RoleBinding, RoleRef, ServiceAccount, Subject
from captfctl.model.meta import ObjectMeta
from captfctl.model.reasons import RunnerRBACReady
from captfctl.model.resources import ROLE_BINDINGS, SERVICE_ACCOUNTS
from captfctl.reconcile.cache import CacheReader
from captfctl.terraform.job.policy import SERVICE_ACCOUNT

BINDING = "captf-runner"
CLUSTER_ROLE = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=BINDING)

_MANAGED = {keys.MANAGED: keys.TRUE}


def ensure(door: Door, cache: CacheReader, namespace: str, account: str) -> ConditionValue | None:
    """Make sure that Jobs can run as `account`: None when they can, else what `RunnerRBACReady`
    says. Raises the door's errors."""
    if account == SERVICE_ACCOUNT:
        _ensure_account(door, cache, namespace)
    elif refusal := _check_override(door, namespace, account):
        return refusal
    return _ensure_binding(door, cache, namespace, account)


def _ensure_account(door: Door, cache: CacheReader, namespace: str) -> None:
    if cache.service_account(namespace, SERVICE_ACCOUNT) is not None:
        return
    account = ServiceAccount(
        api_version=SERVICE_ACCOUNTS.api_version,
        kind=SERVICE_ACCOUNTS.kind,
        metadata=ObjectMeta(name=SERVICE_ACCOUNT, namespace=namespace, labels=dict(_MANAGED)),
    )
    try:
        door.create(SERVICE_ACCOUNTS, account, namespace)
    except AlreadyExists:
        return  # the cache is behind, or somebody made it by hand


def _check_override(door: Door, namespace: str, name: str) -> ConditionValue | None:
    account = find(door, SERVICE_ACCOUNTS, namespace, name)
    if account is not None and account.metadata.labels.get(keys.RUNNER) == keys.TRUE:
        return None
    problem = "does not exist" if account is None else f"lacks the label {keys.RUNNER}=true"
    return RunnerRBACReady.SERVICE_ACCOUNT_NOT_OPTED_IN.says(
        f"ServiceAccount {namespace}/{name} {problem}"
    )


def _ensure_binding(
    door: Door, cache: CacheReader, namespace: str, account: str
) -> ConditionValue | None:
    subject = Subject(kind="ServiceAccount", name=account, namespace=namespace)
    cached = cache.role_binding(namespace, BINDING)
    if cached is not None and cached.role_ref == CLUSTER_ROLE and subject in cached.subjects:
        return None
    what = f"RoleBinding {namespace}/{BINDING}"
    return retry_on_conflict(what, lambda: _bind(door, namespace, subject))


def _bind(door: Door, namespace: str, subject: Subject) -> ConditionValue | None:
    binding = find(door, ROLE_BINDINGS, namespace, BINDING)
    if binding is None:
        door.create(ROLE_BINDINGS, _fresh(namespace, [subject]), namespace)
        return None
    meta = binding.metadata
    if meta.labels.get(keys.MANAGED) != keys.TRUE:
        return RunnerRBACReady.RBAC_FAILED.says(
            f"RoleBinding {namespace}/{BINDING} was made by somebody else (no label "
            f"{keys.MANAGED}=true), so it is not changed; rename or delete it",
        )
    if binding.role_ref != CLUSTER_ROLE:
        # A roleRef cannot be changed in place.
        door.delete(ROLE_BINDINGS, meta.name, namespace, uid=meta.uid)
        subjects = [*(s for s in binding.subjects if s != subject), subject]
        door.create(ROLE_BINDINGS, _fresh(namespace, subjects), namespace)
    elif subject not in binding.subjects:
        binding.subjects.append(subject)
        door.update(ROLE_BINDINGS, binding)
    return None


def _fresh(namespace: str, subjects: list[Subject]) -> RoleBinding:
    return RoleBinding(
        api_version=ROLE_BINDINGS.api_version,
        kind=ROLE_BINDINGS.kind,
        metadata=ObjectMeta(name=BINDING, namespace=namespace, labels=dict(_MANAGED)),
        role_ref=CLUSTER_ROLE,
        subjects=subjects,
    )
