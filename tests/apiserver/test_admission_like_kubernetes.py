"""Admission policies on the embedded API server and Kubernetes' own: same verdict, same words."""

import copy
import json
import random
import re
import ssl
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.error import HTTPError

import pytest

from captfctl.install.policies import policies
from captfctl.model.crds import crds
from captfctl.model.interface import input_names
from captfctl.model.job_policy import RESERVED_ENV, RESERVED_ENV_PREFIXES
from captfctl.model.kinds import Role
from captfctl.model.variable_names import META_ARGUMENTS
from tests.controlplane import assets
from tests.controlplane.processes import ControlPlane
from tests.support.clock import eventually

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

MERGE = "application/merge-patch+json"
GROUP = "/apis/infrastructure.cluster.x-k8s.io/v1alpha1"
CLUSTERS = f"{GROUP}/namespaces/default/terraformclusters"
IDENTITIES = f"{GROUP}/terraformclusteridentities"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


@dataclass(frozen=True)
class Client:
    """Requests to a server; with `user` in that user's name."""

    url: str
    token: str
    authority: Path
    user: str = ""

    def __call__(self, method, path, body=None, content="application/json"):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", content)
        if self.user:
            request.add_header("Impersonate-User", self.user)
        context = ssl.create_default_context(cafile=str(self.authority))
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as error:
            with error:
                text = error.read()
                return error.code, json.loads(text) if text.startswith(b"{") else {}


class Both:
    """The embedded server and the real one, with our kinds and policies on them."""

    def __init__(self, ours: Client, real: Client) -> None:
        self.ours, self.real = ours, real

    def install(self) -> None:
        for client in (self.ours, self.real):
            for crd in crds():
                path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
                assert client("POST", path, crd)[0] == 201
        for path in (f"{GROUP}/terraformclusters", IDENTITIES):
            eventually(lambda path=path: self.real("GET", path)[0] == 200, "the new kinds")
        for document in policies():
            self.enforce(document)
        self.wait_in_force("POST", f"{CLUSTERS}?dryRun=All", cluster(source={"image": "A B"}))

    def enforce(self, document) -> None:
        for client in (self.ours, self.real):
            status, answer = client("POST", f"{ADMISSION}/{PLURALS[document['kind']]}", document)
            assert status == 201, answer

    def wait_in_force(self, method, path, body) -> None:
        """Until the real server, which reads its policies with a delay, refuses this by one."""
        eventually(lambda: self.real(method, path, body)[0] >= 400, "the policies to be in force")

    def agree(self, *request):
        """The answer of both: the same but for uid, times and versions."""
        ours, real = self.ours(*request), self.real(*request)
        assert comparable(*ours) == comparable(*real), json.dumps(request[2])
        return real


def comparable(status, answer):
    answer = copy.deepcopy(answer)
    if answer.get("kind") != "Status":
        return status, answer.get("spec"), answer.get("data")
    # The real server goes through maps in no particular order.
    details = answer.get("details") or {}
    causes = [parts(cause.pop("message")) for cause in details.get("causes", ())]
    return status, answer["reason"], parts(answer["message"]), causes, details


def parts(message: str) -> list[str]:
    return sorted(re.split("; |denied request: ", message))


@pytest.fixture(scope="module")
def both(api, tmp_path_factory) -> Iterator[Both]:
    try:
        plane = ControlPlane(assets.find(), tmp_path_factory.mktemp("real"), scheduler=False)
    except assets.AssetsMissingError as error:
        pytest.skip(str(error))
    plane.start()
    try:
        found = Both(
            Client(api.server.url, api.server.token, api.server.ca_path),
            Client(plane.url, plane.token, plane.folder / "certs" / "apiserver.crt"),
        )
        found.install()
        yield found
    finally:
        plane.stop()


def cluster(name="prod", **spec):
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "TerraformCluster",
        "metadata": {"name": name},
        "spec": {"source": {"image": "a/b:v1"}, "identityRef": {"name": "main"}, **spec},
    }


# What a cluster is made of: some of each is fine, some is not.

IMAGE_PARTS = (
    *("a", "b1", "A", ".", "-", "_", "/", ":", "@", "localhost", "ghcr.io", "5000", "v1", "[::1]"),
    *("sha256:" + "a" * 64, "sha512:" + "0" * 128, " ", "\n", "ä", "b" * 240),
)
VARIABLES = (
    *("region", "a-b", "_x", "9", "", "a.b", "ä", "a\n", "captf_x", "x" * 300, "it's"),
    *sorted(META_ARGUMENTS),
    *sorted(input_names(Role.CLUSTER)),
)
ENV = (*sorted(RESERVED_ENV), *(f"{p}X" for p in RESERVED_ENV_PREFIXES), "A", "tf_x", "HOME_")
VALUES = (True, False, None, 0, 1, 0.0, "", "Unconfined", "Unmasked", "container_t", [], ["X"], {})
CONTEXT_FIELDS = (
    *("privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "procMount"),
    *("runAsNonRoot", "runAsUser", "seccompProfile.type", "appArmorProfile.type"),
    *("windowsOptions.hostProcess", "capabilities.add", "capabilities", "seLinuxOptions"),
    *("seLinuxOptions.type", "seLinuxOptions.user", "seLinuxOptions.role"),
)
SYSCTLS = ("kernel.shm_rmid_forced", "kernel.msgmax", "net.ipv4.tcp_rmem", "")


def some_image(draw: random.Random) -> str:
    return "".join(draw.choices(IMAGE_PARTS, k=draw.randint(1, 6))) if draw.random() < 0.6 else "a"


def some_context(draw: random.Random):
    context = {}
    for field in draw.sample(CONTEXT_FIELDS, draw.randint(0, 4)):
        first, _, second = field.partition(".")
        value = draw.choice(VALUES)
        if not second:
            context[first] = value
        elif isinstance(context.setdefault(first, {}), dict):
            context[first][second] = value
    return context


def some_jobs(draw: random.Random):
    jobs = {"failedJobsHistoryLimit": 1}
    if draw.random() < 0.4:
        jobs["activeDeadlineSeconds"] = draw.choice([1, 299, 300, 301, 3600])
    if draw.random() < 0.4:
        jobs["lockTimeoutSeconds"] = draw.choice([0, 1, 299, 300, 3599, 3600])
    if draw.random() < 0.4:
        jobs["env"] = [{"name": n, "value": "s3cr3t"} for n in draw.sample(ENV, draw.randint(1, 4))]
    if draw.random() < 0.3:
        jobs["securityContext"] = some_context(draw)
    if draw.random() < 0.3:
        jobs["podSecurityContext"] = some_context(draw)
        if draw.random() < 0.5:
            items = [{"name": name} for name in draw.choices(SYSCTLS, k=2)] + [draw.choice(VALUES)]
            jobs["podSecurityContext"]["sysctls"] = draw.choice([items, "kernel.msgmax", None])
    return jobs


def some_spec(draw: random.Random):
    spec = {"source": {"image": some_image(draw)}, "identityRef": {"name": "main"}}
    if draw.random() < 0.5:
        names = draw.sample(VARIABLES, draw.randint(1, 4))
        spec["variables"] = {name: draw.choice(VALUES) for name in names}
    if draw.random() < 0.6:
        spec["jobs"] = some_jobs(draw)
    if draw.random() < 0.4:
        spec["defaults"] = {"jobs": some_jobs(draw)}
    return spec


@pytest.mark.parametrize("seed", range(4))
def test_generated_clusters_are_judged_alike_and_in_the_same_words(both, seed):
    draw = random.Random(seed)
    taken = 0
    for number in range(60):
        body = cluster(f"c-{seed}-{number}", **some_spec(draw))
        status, answer = both.agree("POST", f"{CLUSTERS}?dryRun=All", body)
        taken += status == 201
        assert "s3cr3t" not in answer.get("message", "")
    assert 5 < taken < 55


@pytest.mark.parametrize("seed", range(3))
def test_generated_changes_are_judged_alike_and_in_the_same_words(both, seed):
    draw = random.Random(100 + seed)
    name = f"changed-{seed}"
    both.agree("POST", CLUSTERS, cluster(name))
    refused = 0
    for _ in range(40):
        spec = {"variables": None, "jobs": None, "defaults": None} | some_spec(draw)
        status, _ = both.agree("PATCH", f"{CLUSTERS}/{name}", {"spec": spec}, MERGE)
        refused += status == 422
    assert 5 < refused < 40


def test_so_much_that_is_wrong_that_no_answer_holds_it(both):
    env = [{"name": f"TF_{'x' * 200}{number}"} for number in range(64)]
    status, answer = both.agree("POST", CLUSTERS, cluster(jobs={"env": env}))
    assert status == 422
    assert "captfctl reconcile --dry-run -f FILE" in answer["message"]


def test_the_most_that_the_schema_allows_stays_within_the_servers_budget(both):
    variables = {f"{'v' * 250}{number}": "x" * 200 for number in range(255)}
    env = [{"name": f"{'E' * 250}{number}"} for number in range(64)]
    body = cluster("large", variables=variables, jobs={"env": env}, defaults={"jobs": {"env": env}})
    assert both.agree("POST", f"{CLUSTERS}?dryRun=All", body)[0] == 201
    body["spec"]["variables"]["count"] = 1
    assert both.agree("POST", f"{CLUSTERS}?dryRun=All", body)[0] == 422


def test_a_stored_policy_is_completed_alike(both):
    for document in policies():
        path = f"{ADMISSION}/{PLURALS[document['kind']]}/{document['metadata']['name']}"
        status, answer = both.agree("GET", path, None)
        assert status == 200
        assert not answer.get("status", {}).get("typeChecking", {}).get("expressionWarnings")


# Who may hand out credentials.


def grant(client: Client, user: str, namespace: str = "", **rule) -> None:
    name = f"{user}-{rule['resources'][0]}"
    kind, base = ("Role", f"{RBAC}/namespaces/{namespace}") if namespace else ("ClusterRole", RBAC)
    role = {"kind": kind, "metadata": {"name": name}, "rules": [rule]}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "User", "name": user}],
    }
    assert client("POST", f"{base}/{kind.lower()}s", role)[0] == 201
    assert client("POST", f"{base}/{kind.lower()}bindings", binding)[0] == 201


def identity(name: str, secret: str = "keys", **spec):
    ref = {"name": secret, "namespace": "default"}
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "TerraformClusterIdentity",
        "metadata": {"name": name},
        "spec": {"secretRef": ref, **spec},
    }


@pytest.fixture(scope="module")
def users(both) -> tuple[Client, Client]:
    """One who may make identities only, and one who may also read the Secret `keys`."""
    real = both.real
    for user in ("alice", "bob"):
        verbs = ["create", "patch"]
        resources = ["terraformclusteridentities"]
        group = "infrastructure.cluster.x-k8s.io"
        grant(real, user, apiGroups=[group], resources=resources, verbs=verbs)
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    grant(real, "bob", "default", **rule, resourceNames=["keys"])
    return replace(real, user="alice"), replace(real, user="bob")


def test_only_who_may_read_a_secret_can_let_others_use_it(users):
    alice, bob = users
    eventually(lambda: bob("POST", f"{IDENTITIES}?dryRun=All", identity("x"))[0] == 201, "the role")
    status, answer = alice("POST", IDENTITIES, identity("mine"))
    assert (status, answer["reason"]) == (422, "Invalid")
    assert answer["message"].endswith(
        'denied request: spec.secretRef: user "alice" may not get Secret default/keys, so cannot '
        "let others use it"
    )
    assert bob("POST", IDENTITIES, identity("mine"))[0] == 201
    assert bob("POST", IDENTITIES, identity("more", secret="other"))[0] == 422
    change = {"spec": {"allowedNamespaces": {"list": ["default"]}}}
    assert alice("PATCH", f"{IDENTITIES}/mine", change, MERGE)[0] == 422
    assert bob("PATCH", f"{IDENTITIES}/mine", change, MERGE)[0] == 200
    # What gives nobody more than before is nobody's business but RBAC's.
    for change in (
        {"spec": {"requiredKeys": ["A"]}},
        {"spec": {"allowedNamespaces": None}},
        {"metadata": {"labels": {"a": "b"}}},
    ):
        assert alice("PATCH", f"{IDENTITIES}/mine", change, MERGE)[0] == 200


# Policies of other people.

EXPRESSIONS = (
    "object.data.a == 'x'",
    "has(object.data) && 'a' in object.data",
    "!has(object.data.b) || object.data.b.matches('^[0-9]+$')",
    "oldObject == null || object.data == oldObject.data",
    "object.data.b == 'y' || object.data.a == 'x'",
    "has(object.data.a) && object.data.a.size() < 3",
    "request.operation == 'CREATE'",
    "request.namespace == 'default' && request.resource.resource == 'configmaps'",
    "request.kind.kind == 'ConfigMap' && request.dryRun == false",
    "'system:masters' in request.userInfo.groups",
    "namespaceObject.metadata.name == 'default'",
    "variables.named && variables.short",
    "variables.named || variables.broken",
    "authorizer.group('').resource('pods').namespace('default').check('list').allowed()",
    "object.metadata.name.startsWith('m') ? true : has(object.data.b)",
    "[1, 2, 3].exists(i, i > 2) && object.data.all(k, k.size() == 1)",
    "object.data.map(k, object.data[k]).join(',') != ''",
    "object.data.c.d == 1",
)
MESSAGES = (
    {},
    {"message": "no"},
    {"message": " not so "},
    {"message": "m", "messageExpression": "'name is ' + object.metadata.name"},
    {"message": "fallback", "messageExpression": "'a\\nb'"},
    {"message": "fallback", "messageExpression": "string(object.data.nothing)"},
    {"messageExpression": "'  '"},
    {"reason": "Forbidden", "message": "go away"},
    {"reason": "RequestEntityTooLarge", "messageExpression": "string(object.data.size())"},
)


def some_policy(draw: random.Random, name: str):
    validations = [
        {"expression": draw.choice(EXPRESSIONS), **draw.choice(MESSAGES)}
        for _ in range(draw.randint(1, 3))
    ]
    rule = {
        "apiGroups": draw.choice([[""], ["*"]]),
        "apiVersions": ["v1"],
        "operations": draw.choice([["*"], ["CREATE"], ["UPDATE"], ["CREATE", "UPDATE"]]),
        "resources": draw.choice([["configmaps"], ["*"], ["*/*"], ["secrets", "configmaps"]]),
        "scope": draw.choice(["*", "Namespaced", "Cluster"]),
    }
    constraints = {
        "resourceRules": [rule],
        # The control plane writes objects of its own, and the policies' own would wait for them.
        "objectSelector": {"matchLabels": {"policy": name.partition(".")[0]}},
    }
    if draw.random() < 0.2:
        constraints["excludeResourceRules"] = [{**rule, "resourceNames": ["m1"]}]
    spec = {
        "failurePolicy": draw.choice(["Fail", "Fail", "Ignore"]),
        "matchConstraints": constraints,
        "variables": [
            {"name": "named", "expression": "object.metadata.name.startsWith('m')"},
            {"name": "broken", "expression": "object.data.nothing == 1"},
            {"name": "short", "expression": "variables.named && object.data.a.size() < 3"},
        ],
        "validations": validations,
    }
    if draw.random() < 0.3:
        condition = draw.choice(["object.data.a == 'x'", "object.data.z == 'x'", "true", "false"])
        spec["matchConditions"] = [{"name": "when", "expression": condition}]
    return {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


def binding_of(name: str):
    return {
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }


def guard(name: str):
    """A policy that shows when those made before it are in force."""
    label = name.partition(".")[0]
    policy = {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["configmaps"],
                }
            ],
            "objectSelector": {"matchLabels": {"guard": label}},
        },
        "validations": [{"expression": "false"}],
    }
    return {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": policy}


DATA = ({"a": "x"}, {"a": "xyz"}, {"b": "12"}, {"a": "x", "b": "y"}, {"a": "q", "b": "1"}, None)


def config_map(name: str, label: str, data):
    found = {"metadata": {"name": name, "labels": {"policy": label}}}
    return found if data is None else {**found, "data": data}


def same_verdict(both: Both, *request):
    """Both answers agree; of an expression that fails, only that it does."""

    def shown(status, answer):
        answer = copy.deepcopy(answer)
        head, failed, _ = answer.get("message", "").partition("resulted in error: ")
        if failed:
            answer["message"] = head
            answer["details"]["causes"] = []
        return comparable(status, answer)

    ours, real = both.ours(*request), both.real(*request)
    assert shown(*ours) == shown(*real), json.dumps(request[2])
    return real


@pytest.mark.parametrize("seed", range(3))
def test_policies_of_other_people_are_evaluated_alike(both, seed):
    draw = random.Random(200 + seed)
    names = [f"p{seed}-{number}.example.com" for number in range(8)]
    for name in names:
        both.enforce(some_policy(draw, name))
        both.enforce(binding_of(name))
    last = f"guard{seed}.example.com"
    both.enforce(guard(last))
    both.enforce(binding_of(last))
    body = {"metadata": {"name": "x", "labels": {"guard": f"guard{seed}"}}}
    both.wait_in_force("POST", f"{MAPS}?dryRun=All", body)
    verdicts = set()
    for name in names:
        label = name.partition(".")[0]
        for number, data in enumerate(DATA):
            map_name = draw.choice(["m", "n"]) + str(number)
            body = config_map(map_name, label, data)
            verdicts.add(same_verdict(both, "POST", f"{MAPS}?dryRun=All", body)[0])
        stored = config_map(f"stored-{label}", label, {"a": "x"})
        if same_verdict(both, "POST", MAPS, stored)[0] == 201:
            for data in DATA[1:]:
                change = {"data": data or {"z": "1"}}
                path = f"{MAPS}/stored-{label}?dryRun=All"
                verdicts.add(same_verdict(both, "PATCH", path, change, MERGE)[0])
    assert {201, 422} <= verdicts


BAD = (
    {"validations": [{"expression": "object."}]},
    {"validations": [{"expression": ""}]},
    {"validations": [{"expression": "true", "messageExpression": "authorizer.path('/')"}]},
    {"validations": [{"expression": "true", "reason": "Conflict"}]},
    {"validations": [{"expression": "true", "message": "a\nb"}]},
    {"validations": []},
    {"variables": [{"name": "a-b", "expression": "1"}]},
    {"variables": [{"name": "a", "expression": "nobody.x"}]},
    {"failurePolicy": "Retry"},
    {"matchConstraints": None},
    {"matchConstraints": {}},
    {"matchConditions": [{"expression": "true"}]},
    {
        "matchConditions": [
            {"name": "a", "expression": "true"},
            {"name": "a", "expression": "false"},
        ]
    },
    {"paramKind": {"kind": "ConfigMap"}},
)


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_is_no_policy_is_refused_at_the_same_fields(both, number):
    sound = guard("bad.example.com")
    body = {**sound, "spec": {**sound["spec"], **BAD[number]}}

    def seen(status, answer):
        causes = (answer.get("details") or {}).get("causes") or ()
        return status, {(c["reason"], c["field"]) for c in causes}

    path = f"{ADMISSION}/{PLURALS['ValidatingAdmissionPolicy']}"
    assert seen(*both.ours("POST", path, body)) == seen(*both.real("POST", path, body))
