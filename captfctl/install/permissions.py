"""Who may do what, and what for: the one table behind every Role (manager.md: Installation).

`docs/permissions.md` is this table for people; a test holds both together.
"""

from dataclasses import dataclass

from captfctl.model.core import PolicyRule, Role
from captfctl.model.kinds import INFRASTRUCTURE
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import CAPI, CLUSTER_ROLES, ROLES

MANAGER_ROLE = "captf-manager-role"
LEADER_ROLE = "captf-leader-election-role"
RUNNER_ROLE = "captf-runner"
VIEWER_ROLE = "captf-viewer-role"
EDITOR_ROLE = "captf-editor-role"
APPROVER_ROLE = "captf-plan-approver-role"
METRICS_ROLE = "captf-metrics-reader"

READ = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Permission:
    """One rule of a Role and the reason it is granted."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Its row in docs/permissions.md."""
        resources = ", ".join(self.resources)
        named = f"{resources} named {', '.join(self.names)}" if self.names else resources
        return self.group or "core", named, ", ".join(self.verbs), self.why

    @property
    def rule(self) -> PolicyRule:
        """It as a rule of a Role."""
        return PolicyRule(
            api_groups=[self.group],
            resources=list(self.resources),
            verbs=list(self.verbs),
            resource_names=list(self.names),
        )


OBJECTS = ("terraformclusters", "terraformmachines", "terraformmachinepools")
MACHINE_TEMPLATES = ("terraformmachinetemplates",)
TEMPLATES = (
    "terraformclustertemplates",
    *MACHINE_TEMPLATES,
    "terraformmachinepooltemplates",
)
IDENTITIES = ("terraformclusteridentities",)
PLANS = ("terraformplans",)

MANAGER = (
    Permission("", ("configmaps",), READ, "user variables from labelled ConfigMaps"),
    Permission(
        "",
        ("namespaces",),
        READ,
        "which namespaces an identity allows, and which are being deleted",
    ),
    Permission(
        "",
        ("pods",),
        ("get", "list", "patch"),
        "the result of a run, the finalizer that keeps it until it is read, and who holds a state "
        "lock",
    ),
    Permission(
        "",
        ("secrets",),
        ("create", "delete", "get", "list", "patch", "update", "watch"),
        "state, inputs records, rendered inputs of a run, credentials mirrors",
    ),
    Permission(
        "",
        ("serviceaccounts",),
        ("create", "delete", "get", "list", "watch"),
        "the runner's ServiceAccount in each namespace with runs",
    ),
    Permission(
        "batch", ("jobs",), ("create", "delete", "get", "list", "patch", "watch"), "the runs"
    ),
    Permission("batch", ("jobs/finalizers",), ("update",), "run Secrets owned by their Job"),
    Permission(CAPI, ("clusters",), READ, "what an infrastructure object belongs to"),
    Permission(
        CAPI,
        ("machines",),
        ("list", "patch", "watch"),
        "what a machine belongs to, and the mark that asks for its replacement",
    ),
    Permission(
        CAPI,
        ("machinepools",),
        ("list", "patch", "watch"),
        "what a pool belongs to, and the number of its members",
    ),
    Permission(
        "coordination.k8s.io",
        ("leases",),
        ("create", "delete", "get", "list", "update", "watch"),
        "one run per object, the operation gate, the state lock",
    ),
    Permission("events.k8s.io", ("events",), ("create",), "what happened, for people"),
    Permission(INFRASTRUCTURE, OBJECTS, ("get", "list", "patch", "watch"), "the wishes"),
    Permission(
        INFRASTRUCTURE,
        tuple(f"{kind}/status" for kind in OBJECTS),
        ("patch",),
        "what became of the wishes",
    ),
    Permission(
        INFRASTRUCTURE,
        tuple(f"{kind}/finalizers" for kind in OBJECTS),
        ("update",),
        "Jobs and Secrets owned by the object",
    ),
    Permission(
        INFRASTRUCTURE,
        PLANS,
        ("create", "delete", "get", "list", "patch", "watch"),
        "changes that wait for an approval",
    ),
    Permission(
        INFRASTRUCTURE,
        tuple(f"{kind}/status" for kind in PLANS),
        ("patch",),
        "how far such a change has come",
    ),
    Permission(
        INFRASTRUCTURE,
        IDENTITIES,
        ("get", "list", "patch", "watch"),
        "credentials of the runs, and the finalizer that keeps them while they are used",
    ),
    Permission(
        INFRASTRUCTURE,
        tuple(f"{kind}/status" for kind in IDENTITIES),
        ("patch",),
        "whether an identity's Secret is usable, and where it is used",
    ),
    Permission(
        INFRASTRUCTURE, MACHINE_TEMPLATES, ("list", "watch"), "the capacity of future Nodes"
    ),
    Permission(
        INFRASTRUCTURE,
        tuple(f"{kind}/status" for kind in MACHINE_TEMPLATES),
        ("patch",),
        "that capacity, where autoscalers read it",
    ),
    Permission(
        "rbac.authorization.k8s.io",
        ("clusterroles",),
        ("bind",),
        "binding the runner's role, which grants less than the manager has",
        (RUNNER_ROLE,),
    ),
    Permission(
        "rbac.authorization.k8s.io",
        ("rolebindings",),
        ("create", "delete", "get", "list", "update", "watch"),
        "the runner's role in each namespace with runs",
    ),
    # The diagnostics endpoint asks the API server who a scraper is and whether it may read.
    Permission("authentication.k8s.io", ("tokenreviews",), ("create",), "who asks for the metrics"),
    Permission(
        "authorization.k8s.io",
        ("subjectaccessreviews",),
        ("create",),
        "whether they may read them",
    ),
)

LEADER = (
    Permission(
        "coordination.k8s.io",
        ("leases",),
        ("create", "get", "patch"),
        "one active manager among the replicas",
    ),
)

RUNNER = (
    Permission(
        "",
        ("secrets",),
        ("get", "list", "create", "update", "delete"),
        "the state, through the runtime's own backend",
    ),
    Permission("coordination.k8s.io", ("leases",), ("get", "create", "update"), "the state lock"),
    Permission("events.k8s.io", ("events",), ("create",), "progress of a run"),
)

# Only for a scraper that is given this role; a non-resource rule has no group.
METRICS_RULES = [PolicyRule(non_resource_urls=["/metrics"], verbs=["get"])]

VIEWER = (Permission(INFRASTRUCTURE, (*OBJECTS, *TEMPLATES, *IDENTITIES, *PLANS), READ, "looking"),)
EDITOR = (
    Permission(
        INFRASTRUCTURE, (*OBJECTS, *TEMPLATES), ("create", "update", "patch", "delete"), "changing"
    ),
)
# Part of no other role: who changes an object shall not approve the plan as well.
APPROVER = (
    Permission(INFRASTRUCTURE, PLANS, (*READ, "patch"), "reading plans, and approving them"),
)


def cluster_role(name: str, permissions: tuple[Permission, ...], **labels: str) -> Role:
    """A ClusterRole granting `permissions`."""
    return Role(
        api_version=CLUSTER_ROLES.api_version,
        kind=CLUSTER_ROLES.kind,
        metadata=ObjectMeta(name=name, labels=labels),
        rules=[permission.rule for permission in permissions],
    )


def role(name: str, namespace: str, permissions: tuple[Permission, ...]) -> Role:
    """A Role granting `permissions` in one namespace."""
    return Role(
        api_version=ROLES.api_version,
        kind=ROLES.kind,
        metadata=ObjectMeta(name=name, namespace=namespace),
        rules=[permission.rule for permission in permissions],
    )


def runner_role() -> Role:
    """The ClusterRole that the manager binds to the runner in each namespace with runs."""
    return cluster_role(RUNNER_ROLE, RUNNER)
