"""Every resource captfctl reads or writes through a door."""

from collections.abc import Mapping
from typing import Any, Final

from captfctl.model import capi, core, identity, kinds, machine, plan, templates, terraform
from captfctl.model.kinds import INFRASTRUCTURE, VERSION
from captfctl.model.resource import Resource

CAPI = "cluster.x-k8s.io"

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", False, core.Namespace)
SECRETS = Resource("", "v1", "Secret", "secrets", True, core.Secret)
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", True, core.ConfigMap)
PODS = Resource("", "v1", "Pod", "pods", True, core.Pod)
NODES = Resource("", "v1", "Node", "nodes", False, core.Node)
SERVICE_ACCOUNTS = Resource(
    "", "v1", "ServiceAccount", "serviceaccounts", True, core.ServiceAccount
)
JOBS = Resource("batch", "v1", "Job", "jobs", True, core.Job)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", True, core.Lease)
EVENTS = Resource("events.k8s.io", "v1", "Event", "events", True, core.Event)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles", True, core.Role)
ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", True, core.RoleBinding
)
CLUSTER_ROLES = Resource(
    "rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False, core.Role
)
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io",
    "v1",
    "ClusterRoleBinding",
    "clusterrolebindings",
    False,
    core.RoleBinding,
)
CRDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    False,
    core.CustomResourceDefinition,
)
ADMISSION_POLICIES = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    False,
    core.AdmissionPolicy,
)
ADMISSION_POLICY_BINDINGS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    False,
    core.AdmissionPolicy,
)

CLUSTERS = Resource(CAPI, "v1beta2", "Cluster", "clusters", True, capi.Cluster)
MACHINES = Resource(CAPI, "v1beta2", "Machine", "machines", True, capi.Machine)
MACHINE_POOLS = Resource(CAPI, "v1beta2", "MachinePool", "machinepools", True, capi.MachinePool)

OWNERS: Final[Mapping[str, Resource[Any]]] = {
    kinds.CLUSTER.name: CLUSTERS,
    kinds.MACHINE.name: MACHINES,
    kinds.MACHINE_POOL.name: MACHINE_POOLS,
}
"""What of Cluster API owns the objects of our kinds, by their names."""

TERRAFORM_CLUSTERS = kinds.CLUSTER.resource(terraform.TerraformCluster)
TERRAFORM_CLUSTER_IDENTITIES = Resource(
    INFRASTRUCTURE,
    VERSION,
    "TerraformClusterIdentity",
    "terraformclusteridentities",
    False,
    identity.TerraformClusterIdentity,
)
TERRAFORM_MACHINES = kinds.MACHINE.resource(machine.TerraformMachine)
TERRAFORM_MACHINE_POOLS = kinds.MACHINE_POOL.resource(machine.TerraformMachinePool)
TERRAFORM_CLUSTER_TEMPLATES = Resource(
    INFRASTRUCTURE,
    VERSION,
    "TerraformClusterTemplate",
    "terraformclustertemplates",
    True,
    templates.TerraformClusterTemplate,
)
TERRAFORM_MACHINE_TEMPLATES = Resource(
    INFRASTRUCTURE,
    VERSION,
    "TerraformMachineTemplate",
    "terraformmachinetemplates",
    True,
    templates.TerraformMachineTemplate,
)
TERRAFORM_MACHINE_POOL_TEMPLATES = Resource(
    INFRASTRUCTURE,
    VERSION,
    "TerraformMachinePoolTemplate",
    "terraformmachinepooltemplates",
    True,
    templates.TerraformMachinePoolTemplate,
)
TERRAFORM_PLANS = Resource(
    INFRASTRUCTURE, VERSION, "TerraformPlan", "terraformplans", True, plan.TerraformPlan
)
