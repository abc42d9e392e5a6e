"""Everything an installation consists of, in the order in which it has to be created."""

import msgspec

from captfctl.install import permissions, workload
from captfctl.install.policies import policies
from captfctl.install.workload import InstallOptions
from captfctl.model.core import Role, RoleBinding, RoleRef, Subject
from captfctl.model.crds import crds
from captfctl.model.meta import ObjectMeta
from captfctl.model.resource import Document
from captfctl.model.resources import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS

_RBAC = "rbac.authorization.k8s.io"
_AGGREGATE = f"{_RBAC}/aggregate-to-"


def manifests(options: InstallOptions) -> list[Document]:
    """Kinds and what admission says about them, then permissions, then the workload."""
    return [
        workload.namespace(options),
        *crds(),
        *policies(workload.manager_user(options)),
        workload.service_account(options),
        *(_document(role) for role in _roles(options)),
        *(_document(binding) for binding in _bindings(options)),
        workload.metrics_service(options),
        workload.disruption_budget(options),
        workload.deployment(options),
    ]


def _roles(options: InstallOptions) -> list[Role]:
    metrics = permissions.cluster_role(permissions.METRICS_ROLE, ())
    metrics.rules = permissions.METRICS_RULES
    return [
        permissions.cluster_role(permissions.MANAGER_ROLE, permissions.MANAGER),
        permissions.role(permissions.LEADER_ROLE, options.namespace, permissions.LEADER),
        permissions.runner_role(),
        permissions.cluster_role(
            permissions.VIEWER_ROLE, permissions.VIEWER, **{f"{_AGGREGATE}view": "true"}
        ),
        permissions.cluster_role(
            permissions.EDITOR_ROLE,
            permissions.EDITOR,
            **{f"{_AGGREGATE}edit": "true", f"{_AGGREGATE}admin": "true"},
        ),
        permissions.cluster_role(permissions.APPROVER_ROLE, permissions.APPROVER),
        metrics,
    ]


def _bindings(options: InstallOptions) -> list[RoleBinding]:
    subject = Subject(
        kind="ServiceAccount", name=workload.SERVICE_ACCOUNT, namespace=options.namespace
    )
    return [
        RoleBinding(
            api_version=CLUSTER_ROLE_BINDINGS.api_version,
            kind=CLUSTER_ROLE_BINDINGS.kind,
            metadata=ObjectMeta(name="captf-manager-rolebinding"),
            role_ref=RoleRef(api_group=_RBAC, kind="ClusterRole", name=permissions.MANAGER_ROLE),
            subjects=[subject],
        ),
        RoleBinding(
            api_version=ROLE_BINDINGS.api_version,
            kind=ROLE_BINDINGS.kind,
            metadata=ObjectMeta(
                name="captf-leader-election-rolebinding", namespace=options.namespace
            ),
            role_ref=RoleRef(api_group=_RBAC, kind="Role", name=permissions.LEADER_ROLE),
            subjects=[subject],
        ),
    ]


def _document(obj: Role | RoleBinding) -> Document:
    document: Document = msgspec.to_builtins(obj)
    return document
