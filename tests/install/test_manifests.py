"""What `captfctl manifests` prints."""

import pytest

from captfctl.install.manifests import manifests
from captfctl.install.workload import InstallOptions

OPTIONS = InstallOptions(image="registry.example.com/captfctl:v1", namespace="tools")


def of_kind(kind, options=OPTIONS):
    return [document for document in manifests(options) if document["kind"] == kind]


def test_kinds_come_before_permissions_and_permissions_before_the_workload():
    kinds = [document["kind"] for document in manifests(OPTIONS)]

    assert kinds[0] == "Namespace"
    assert kinds.index("CustomResourceDefinition") < kinds.index("ClusterRole")
    assert kinds[-1] == "Deployment"


def test_everything_namespaced_is_in_the_namespace_asked_for():
    namespaces = {d["metadata"].get("namespace") for d in manifests(OPTIONS)}

    assert namespaces == {None, "tools"}


def test_the_manager_runs_as_the_restricted_level_demands():
    (deployment,) = of_kind("Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"watch_namespace": "team-a"}, "--namespace=team-a"),
        ({"flags": ("--max-active-jobs=3",)}, "--max-active-jobs=3"),
    ],
)
def test_options_become_flags_of_the_manager(change, argument):
    options = InstallOptions(image="a:v1", **change)
    (deployment,) = of_kind("Deployment", options)

    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert argument in container["args"]


def test_the_binding_names_the_managers_account():
    (binding,) = of_kind("ClusterRoleBinding")

    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "captf-manager", "namespace": "tools"}
    ]
