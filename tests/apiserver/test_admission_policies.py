"""Admission policies on the embedded server, with the real kubectl."""

import json
import uuid

import pytest

from captfctl.install.policies import policies
from captfctl.kubeyaml import to_yaml
from captfctl.model.crds import crds

pytestmark = pytest.mark.kubectl

PATH = "/apis/admissionregistration.k8s.io/v1"
CLUSTERS = "terraformclusters.infrastructure.cluster.x-k8s.io"


@pytest.fixture(scope="module")
def installed(api):
    for crd in crds():
        api.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    return api


@pytest.fixture
def captf(installed, kubectl):
    """kubectl, with the policies applied twice."""
    text = "---\n".join(map(to_yaml, policies()))
    kubectl("apply", "--server-side", "-f", "-", stdin=text)
    kubectl("apply", "--server-side", "--validate=strict", "-f", "-", stdin=text)
    return kubectl


def cluster(name="prod", **spec):
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "TerraformCluster",
        "metadata": {"name": name},
        "spec": {"source": {"image": "a/b:v1"}, "identityRef": {"name": "main"}, **spec},
    }


def bad_in_three_ways():
    return cluster(
        source={"image": "Foo Bar"},
        variables={"captf_x": 1},
        jobs={"env": [{"name": "TF_LOG", "value": "hunter2"}], "lockTimeoutSeconds": 3600},
    )


@pytest.mark.parametrize(
    "command", [("create",), ("apply",), ("apply", "--server-side"), ("create", "--dry-run=server")]
)
def test_kubectl_is_told_everything_that_is_wrong_in_one_answer(captf, command):
    told = captf.fails(*command, "-f", "-", stdin=bad_in_three_ways())
    assert (
        f"ValidatingAdmissionPolicy '{CLUSTERS}' with binding '{CLUSTERS}' denied request" in told
    )
    for field in (
        "spec.source.image",
        "spec.variables[captf_x]",
        "spec.jobs.lockTimeoutSeconds",
        'spec.jobs.env[name="TF_LOG"].name',
    ):
        assert f"{field}: " in told
    assert "hunter2" not in told
    assert captf("get", "tfc", "-o", "name") == ""


def test_changes_are_asked_about_like_creates(captf):
    captf("create", "-f", "-", stdin=cluster())
    patch = json.dumps({"spec": {"variables": {"count": 1}}})
    told = captf.fails("patch", "tfc", "prod", "--type=merge", "-p", patch)
    assert "spec.variables[count]: the name is reserved" in told
    captf("label", "tfc", "prod", "team=a")
    assert captf.json("get", "tfc", "prod")["metadata"]["generation"] == 1


def test_the_status_of_the_answer_is_the_real_servers(captf, installed):
    path = f"/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/{captf.namespace}"
    status, answer = installed.call("POST", f"{path}/terraformclusters", bad_in_three_ways())
    message = answer.pop("message")
    (cause,) = answer["details"].pop("causes")
    assert message == f'{CLUSTERS} "prod" is forbidden: {cause["message"]}'
    assert set(cause) == {"message"}
    assert answer == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": "Invalid",
        "details": {
            "name": "prod",
            "group": "infrastructure.cluster.x-k8s.io",
            "kind": "terraformclusters",
        },
        "code": 422,
    }
    assert status == 422


def test_kubectl_shows_the_policies_and_their_bindings(captf):
    head, *rows = captf("get", "validatingadmissionpolicies").splitlines()
    assert head.split() == ["NAME", "VALIDATIONS", "PARAMKIND", "AGE"]
    shown = {row.split()[0]: row.split()[1:3] for row in rows}
    assert shown[CLUSTERS] == ["1", "<unset>"]
    head, *rows = captf("get", "validatingadmissionpolicybindings").splitlines()
    assert head.split() == ["NAME", "POLICYNAME", "PARAMREF", "AGE"]
    shown = {row.split()[0]: row.split()[1:3] for row in rows}
    assert shown[CLUSTERS] == [CLUSTERS, "<unset>"]


@pytest.fixture
def policy(installed, namespace):
    """Make a policy for the ConfigMaps of the test's namespace, with a binding."""
    made = []

    def make(validations, *, actions=("Deny",), operations=("*",), **spec):
        name = f"p-{uuid.uuid4().hex[:8]}.example.com"
        made.append(name)
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": list(operations),
            "resources": ["configmaps"],
        }
        body = {
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": validations,
                **spec,
            },
        }
        installed.ok("POST", f"{PATH}/validatingadmissionpolicies", body)
        selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        binding = {
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": list(actions),
                "matchResources": {"namespaceSelector": selector},
            },
        }
        installed.ok("POST", f"{PATH}/validatingadmissionpolicybindings", binding)
        return name

    yield make
    for name in made:
        for plural in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
            installed.ok("DELETE", f"{PATH}/{plural}/{name}")


def test_a_policy_that_only_warns_lets_the_write_through(policy, kubectl):
    name = policy([{"expression": "false", "message": "better not"}], actions=["Warn", "Audit"])
    done = kubectl.run("create", "configmap", "a")
    assert done.returncode == 0
    assert (
        f"Warning: Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': "
        "better not" in done.stderr
    )


def test_a_deletion_can_be_refused_and_knows_what_would_go(policy, kubectl):
    kubectl("create", "configmap", "a", "--from-literal=keep=yes")
    kubectl("create", "configmap", "b", "--from-literal=keep=no")
    policy(
        [{"expression": "oldObject.data.keep != 'yes'", "reason": "Forbidden"}],
        operations=["DELETE"],
    )
    told = kubectl.fails("delete", "configmap", "a")
    assert "Error from server (Forbidden)" in told or "forbidden" in told
    assert "failed expression: oldObject.data.keep != 'yes'" in told
    kubectl("delete", "configmap", "b")
    assert "configmap/a" in kubectl("get", "configmap", "-o", "name")


def test_a_policy_knows_who_asks_and_where(policy, kubectl, namespace):
    policy(
        [
            {
                "expression": "variables.who == 'somebody-else'",
                "messageExpression": "variables.who + ' in ' + namespaceObject.metadata.name + "
                "': ' + request.operation + ' ' + request.resource.resource",
            }
        ],
        variables=[{"name": "who", "expression": "request.userInfo.username"}],
    )
    told = kubectl.fails("create", "configmap", "a")
    assert f"local-admin in {namespace}: CREATE configmaps" in told


def test_a_match_condition_that_is_false_spares_the_request(policy, kubectl):
    condition = {"name": "only-big", "expression": "'big' in object.data"}
    policy([{"expression": "false"}], matchConditions=[condition])
    kubectl("create", "configmap", "a", "--from-literal=x=y")
    assert "failed expression: false" in kubectl.fails(
        "create", "configmap", "b", "--from-literal=big=1"
    )


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_an_expression_that_fails_refuses_unless_failures_are_ignored(
    policy, kubectl, failure_policy
):
    policy([{"expression": "object.data.x.y == 1"}], failurePolicy=failure_policy)
    done = kubectl.run("create", "configmap", "a", "--from-literal=x=y")
    assert (done.returncode == 0) is (failure_policy == "Ignore")
    if failure_policy == "Fail":
        assert "expression 'object.data.x.y == 1' resulted in error: " in done.stderr


def test_parameters_decide_and_their_absence_refuses(installed, policy, kubectl, namespace):
    name = policy(
        [{"expression": "object.data.size == params.data.size", "message": "wrong size"}],
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        matchConditions=[{"name": "sized", "expression": "has(object.data.size)"}],
    )
    ref = {"name": "limits", "namespace": namespace, "parameterNotFoundAction": "Deny"}
    binding = f"{PATH}/validatingadmissionpolicybindings/{name}"
    installed.merge(binding, {"spec": {"paramRef": ref}})
    told = kubectl.fails("create", "configmap", "a", "--from-literal=size=1")
    assert "failed to configure binding: no params found" in told
    installed.merge(binding, {"spec": {"paramRef": {"parameterNotFoundAction": "Allow"}}})
    kubectl("create", "configmap", "limits", "--from-literal=size=2")
    assert "wrong size" in kubectl.fails("create", "configmap", "b", "--from-literal=size=1")
    kubectl("create", "configmap", "c", "--from-literal=size=2")


SPEC = {
    "failurePolicy": "Fail",
    "matchConstraints": {
        "resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}
        ]
    },
    "validations": [{"expression": "true"}],
}
BAD_POLICIES = {
    "spec.validations[0].expression": {"validations": [{"expression": "object."}]},
    "spec.validations[0].messageExpression": {
        "validations": [{"expression": "true", "messageExpression": "authorizer.path('/')"}]
    },
    "spec.validations[0].reason": {"validations": [{"expression": "true", "reason": "Conflict"}]},
    "spec.validations[0].message": {"validations": [{"expression": "true", "message": "a\nb"}]},
    "spec.variables[0].name": {"variables": [{"name": "a-b", "expression": "1"}]},
    "spec.variables[0].expression": {"variables": [{"name": "a", "expression": "nobody.x"}]},
    "spec.failurePolicy": {"failurePolicy": "Retry"},
    "spec.matchConstraints": {"matchConstraints": None},
    "spec.matchConstraints.resourceRules": {"matchConstraints": {}},
    "spec.validations": {"validations": []},
    "spec.matchConditions[0].name": {"matchConditions": [{"expression": "true"}]},
}


@pytest.mark.parametrize("field", BAD_POLICIES)
def test_what_is_no_policy_is_refused_at_the_field(installed, field):
    body = {"metadata": {"name": "bad.example.com"}, "spec": {**SPEC, **BAD_POLICIES[field]}}
    status, answer = installed.call("POST", f"{PATH}/validatingadmissionpolicies", body)
    assert status == 422
    assert field in [cause["field"] for cause in answer["details"]["causes"]]


BAD_BINDINGS = {
    "spec.policyName": {"validationActions": ["Deny"]},
    "spec.validationActions": {"policyName": "a"},
    "spec.validationActions[0]": {"policyName": "a", "validationActions": ["Shout"]},
    "spec.paramRef": {
        "policyName": "a",
        "validationActions": ["Deny"],
        "paramRef": {"namespace": "x"},
    },
}


@pytest.mark.parametrize("field", BAD_BINDINGS)
def test_what_is_no_binding_is_refused_at_the_field(installed, field):
    body = {"metadata": {"name": "bad.example.com"}, "spec": BAD_BINDINGS[field]}
    status, answer = installed.call("POST", f"{PATH}/validatingadmissionpolicybindings", body)
    assert status == 422
    assert field in [cause["field"] for cause in answer["details"]["causes"]]
