"""The same requests to the embedded API server and to Kubernetes' own: the answers agree."""

import itertools
import json
import random
import re
import ssl
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

import pytest

from captfctl.embedded.apiserver.field_sets import decode, path_text
from tests.apiserver.conftest import WIDGETS, widget
from tests.apiserver.examples import EXAMPLES
from tests.controlplane.assets import AssetsMissingError, find
from tests.controlplane.processes import ControlPlane
from tests.support.clock import eventually

pytestmark = pytest.mark.kubernetes

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def decoded(body):
    """An answer; a path that is not served yet is answered with plain text."""
    return json.loads(body) if body.startswith(b"{") else {"text": body.decode()}


@dataclass
class Client:
    url: str
    token: str
    authority: Path

    def __call__(self, method, path, body=None, content="application/json"):
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", content)
        context = ssl.create_default_context(cafile=str(self.authority))
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as error:
            with error:
                return error.code, decoded(error.read())


@dataclass
class Both:
    """Two servers that are asked the same."""

    ours: Client
    real: Client

    def __call__(self, *request):
        ours, real = self.ours(*request), self.real(*request)
        assert comparable(*ours) == comparable(*real), request
        return real


def comparable(status, answer):
    """What both servers have to agree about."""
    if answer.get("kind") == "Status":
        details = answer.get("details") or {}
        causes = {(c.get("reason"), c.get("field")) for c in details.get("causes") or ()}
        named = {key: details.get(key, "") for key in ("name", "group", "kind")}
        return status, answer["status"], answer.get("reason"), named, causes
    metadata = dict(answer["metadata"])
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        metadata.pop(key, None)
    entries = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in metadata.pop("managedFields", ())
    ]
    entries.sort(key=lambda entry: json.dumps(entry, sort_keys=True))
    return status, {**answer, "metadata": metadata}, entries


@pytest.fixture(scope="module")
def both(api, tmp_path_factory) -> Iterator[Both]:
    try:
        plane = ControlPlane(find(), tmp_path_factory.mktemp("real"), scheduler=False)
    except AssetsMissingError as error:
        pytest.skip(str(error))
    plane.start()
    real = Client(plane.url, plane.token, plane.folder / "certs" / "apiserver.crt")
    real("POST", CRDS, WIDGETS)
    eventually(lambda: real("GET", "/apis/example.io/v1/widgets")[0] == 200, "the new kind")
    yield Both(Client(api.server.url, api.server.token, api.server.ca_path), real)
    plane.stop()


WIDGETS_PATH = "/apis/example.io/v1/namespaces/default/widgets"
MAPS_PATH = "/api/v1/namespaces/default/configmaps"


def some_spec(draw):
    spec = {}
    if draw.random() < 0.6:
        spec["size"] = draw.randrange(3)
    if draw.random() < 0.5:
        spec["image"] = draw.choice("ab")
    if draw.random() < 0.2:
        spec["color"] = draw.choice(["red", "blue"])
    if draw.random() < 0.6:
        ips = draw.sample("123", draw.randrange(1, 3))
        spec["hosts"] = [
            {"ip": ip} | ({"name": draw.choice("xy")} if draw.random() < 0.5 else {}) for ip in ips
        ]
    return spec


def some_widget(draw, name):
    document = widget(name, **some_spec(draw))
    if draw.random() < 0.4:
        document["metadata"]["labels"] = {draw.choice("ab"): draw.choice("12")}
    if draw.random() < 0.2:
        document["metadata"]["finalizers"] = draw.sample(["f.io/a", "f.io/b"], 1)
    return document


def some_status(draw, name):
    status = {"phase": draw.choice(["Ready", "Waiting"])}
    if draw.random() < 0.6:
        status["conditions"] = [
            {"type": kind, "status": draw.choice(["True", "False"])}
            for kind in draw.sample(["Ready", "Done"], draw.randrange(1, 3))
        ]
    return widget(name, status=status)


def refused_null(answer):
    causes = answer[1].get("details", {}).get("causes", ())
    return [(c["reason"], c["field"]) for c in causes] == [("FieldValueTypeInvalid", "spec.hosts")]


@pytest.mark.parametrize("seed", range(12))
def test_custom_resources_are_applied_and_patched_alike(both, seed):
    draw = random.Random(seed)
    name = f"w{seed}"
    path = f"{WIDGETS_PATH}/{name}"
    for _ in range(14):
        manager = draw.choice(["one", "two", "three"])
        force = draw.choice(["&force=true", ""])
        kind = draw.randrange(6)
        if kind <= 2:
            body = some_widget(draw, name)
            try:
                both("PATCH", f"{path}?fieldManager={manager}{force}", body, APPLY)
            except AssertionError:
                # A list that lost its last item becomes null in Kubernetes, which then refuses its
                # own result. Here the list is gone: the apply means just that.
                if refused_null(
                    both.real("PATCH", f"{path}?fieldManager={manager}{force}", body, APPLY)
                ):
                    return
                raise
        elif kind == 3:
            patch = {"spec": some_spec(draw)} | draw.choice([{}, {"metadata": {"labels": None}}])
            both("PATCH", f"{path}?fieldManager=editor", patch, MERGE)
        elif kind == 4:
            body = some_status(draw, name)
            both("PATCH", f"{path}/status?fieldManager={manager}{force}", body, APPLY)
        else:
            status, live = both.real("GET", path)
            operation = {"op": "remove", "path": "/spec/" + draw.choice(["size", "hosts", "image"])}
            if status == 200 and operation["path"].split("/")[2] in live["spec"]:
                both("PATCH", f"{path}?fieldManager=editor", [operation], JSON_PATCH)
    both("GET", path)


@pytest.mark.parametrize("seed", range(6))
def test_config_maps_are_applied_and_patched_alike(both, seed):
    draw = random.Random(seed)
    name = f"c{seed}"
    path = f"{MAPS_PATH}/{name}"
    for _ in range(14):
        manager = draw.choice(["one", "two"])
        data = {draw.choice("abc"): draw.choice("12") for _ in range(draw.randrange(3))}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {draw.choice("xy"): "1"}},
            "data": data,
        }
        force = draw.choice(["&force=true", ""])
        match draw.randrange(4):
            case 0 | 1:
                both("PATCH", f"{path}?fieldManager={manager}{force}", body, APPLY)
            case 2:
                patch = {"data": {draw.choice("abc"): draw.choice([None, "3"])}}
                both("PATCH", f"{path}?fieldManager=editor", patch, STRATEGIC)
            case 3:
                both("PUT", f"{path}?fieldManager=replacer", body)
    both("GET", path)


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "automountServiceAccountToken": False,
        "tolerations": [{"key": "mine", "operator": "Exists"}],
        "containers": [
            {
                "name": "main",
                "image": "registry.example/i:1",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                "resources": {"limits": {"memory": "1Gi"}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


def test_a_pods_fields_are_owned_alike(both):
    """Without what admission adds, which the embedded server has none of."""
    path = "/api/v1/namespaces/default/pods/p"
    answers = [
        client("PATCH", f"{path}?fieldManager=one&dryRun=All", POD, APPLY)
        for client in (both.ours, both.real)
    ]
    assert [status for status, _ in answers] == [201, 201], answers
    ours, real = (
        {e["manager"]: e["fieldsV1"] for e in answer["metadata"]["managedFields"]}
        for _, answer in answers
    )
    assert ours == real


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {
        "suspend": True,
        "template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "main", "image": "registry.example/i:1", "args": ["a"]},
        ]}},
    },
}  # fmt: skip


def test_a_jobs_fields_are_owned_alike_when_it_is_created(both):
    path = "/apis/batch/v1/namespaces/default/jobs?fieldManager=one&dryRun=All"
    answers = [client("POST", path, JOB) for client in (both.ours, both.real)]
    assert [status for status, _ in answers] == [201, 201], answers
    ours, real = (
        {path_text(p) for p in decode(answer["metadata"]["managedFields"][0]["fieldsV1"])}
        for _, answer in answers
    )
    assert ours == real


@pytest.mark.parametrize(
    ("method", "path", "body", "content"),
    [
        ("GET", f"{WIDGETS_PATH}/absent", None, ""),
        ("GET", "/api/v1/namespaces/default/secrets/absent", None, ""),
        ("DELETE", f"{WIDGETS_PATH}/absent", None, ""),
        ("PATCH", f"{WIDGETS_PATH}/absent", {"spec": {}}, MERGE),
        ("PATCH", f"{WIDGETS_PATH}/errors", {"spec": {}}, APPLY),
        ("PATCH", f"{WIDGETS_PATH}/errors?force=true", {"spec": {}}, MERGE),
        ("PATCH", f"{WIDGETS_PATH}/errors", {"spec": {"size": 2}}, STRATEGIC),
        ("PATCH", f"{WIDGETS_PATH}/errors", {"spec": {"size": -2}}, MERGE),
        ("PATCH", f"{WIDGETS_PATH}/errors", [{"op": "test", "path": "/x", "value": 1}], JSON_PATCH),
        ("POST", WIDGETS_PATH, widget("errors"), "application/json"),
        ("POST", WIDGETS_PATH, widget("new", size="three"), "application/json"),
        ("POST", f"{WIDGETS_PATH}?fieldValidation=Strict", widget("new", x=1), "application/json"),
        ("POST", f"{WIDGETS_PATH}?dryRun=Some", widget("new"), "application/json"),
        ("POST", WIDGETS_PATH, widget("Bad_Name"), "application/json"),
        ("PUT", f"{WIDGETS_PATH}/errors", widget("other"), "application/json"),
        ("PUT", "/api/v1/namespaces/default/secrets/absent", {"metadata": {"name": "absent"}}, ""),
    ],
)
def test_refusals_are_alike(both, method, path, body, content):
    both.ours("POST", WIDGETS_PATH, widget("errors", size=1))
    both.real("POST", WIDGETS_PATH, widget("errors", size=1))
    ours = both.ours(method, path, body, content or "application/json")
    real = both.real(method, path, body, content or "application/json")
    assert ours[0] == real[0], (ours[1], real[1])
    assert ours[1].get("reason") == real[1].get("reason")
    mine, theirs = comparable(*ours), comparable(*real)
    assert mine == theirs


def test_tables_have_the_same_columns(both):
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    for path in (
        "/api/v1/pods", "/api/v1/secrets", "/api/v1/configmaps", "/api/v1/namespaces",
        "/api/v1/nodes", "/api/v1/events", "/api/v1/serviceaccounts", "/apis/batch/v1/jobs",
        "/apis/coordination.k8s.io/v1/leases", "/apis/events.k8s.io/v1/events",
        "/apis/rbac.authorization.k8s.io/v1/roles",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", CRDS, WIDGETS_PATH,
    ):  # fmt: skip
        found = []
        for client in (both.ours, both.real):
            request = urllib.request.Request(client.url + path + "?limit=1")
            request.add_header("Authorization", f"Bearer {client.token}")
            request.add_header("Accept", accept)
            context = ssl.create_default_context(cafile=str(client.authority))
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                columns = json.loads(answer.read())["columnDefinitions"]
            found.append([(c["name"], c["type"], c["priority"] > 0) for c in columns])
        assert found[0] == found[1], path


ADMITTED = {
    "Pod": {"spec.priority", "spec.preemptionPolicy"},
    "Node": {"spec.taints", "metadata.annotations", "status.allocatable"},
    "Job": {"status.terminating"},
    "CustomResourceDefinition": {
        "metadata.finalizers",
        "status.acceptedNames",
        "status.conditions",
        "status.storedVersions",
    },
    "ValidatingAdmissionPolicy": {"status.typeChecking", "status.observedGeneration"},
}
"""What admission and controllers add to an object, of which the embedded server has none."""


def flat(value, path=""):
    """The values in a document by path; to a client, what is null is absent."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from flat(item, f"{path}[{index}]")
    elif value not in (None, {}, []):
        yield path, value


def told(answer, kind):
    """An answer's fields but for what differs from server to server."""
    metadata = answer["metadata"]
    text = json.dumps(answer).replace(metadata["uid"], "UID")
    document = json.loads(text)
    for key in ("resourceVersion", "creationTimestamp", "managedFields"):
        document["metadata"].pop(key, None)
    moment = re.compile(r"^20\d\d-")
    return {
        path: "TIME" if path.endswith("Time") and moment.match(str(value)) else value
        for path, value in flat(document)
        if not any(path.startswith(added) for added in ADMITTED.get(kind, ()))
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e.api_version}-{e.kind}")
def test_objects_of_every_kind_are_written_alike(both, example):
    """Field by field, also those that are false, zero or empty, and after a status half filled."""
    run = f"x{random.randrange(1 << 32):x}"
    robot = {"metadata": {"name": "robot"}}
    document = example.named(run, "default")
    document["metadata"]["labels"] = {"run": run}
    if example.kind == "Pod":
        document["spec"] |= {
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
        }
    path = example.collection("default")
    one = f"{path}/{document['metadata']['name']}"
    answers = []
    for client in (both.ours, both.real):
        client("POST", "/api/v1/namespaces/default/serviceaccounts", robot)
        found = [client("POST", path, document)]
        if example.status is not None:
            found.append(client("PATCH", f"{one}/status", {"status": example.status}, MERGE))
        client("DELETE", f"{one}?gracePeriodSeconds=0")
        answers.append(found)
    for (our_status, ours), (real_status, real) in zip(*answers, strict=True):
        assert (our_status, real_status) in ((200, 200), (201, 201)), (ours, real)
        assert told(ours, example.kind) == told(real, example.kind)


VERSIONS = ("", "0", "99999999")
MATCHES = ("", "Exact", "NotOlderThan", "Some")


@pytest.mark.parametrize("path", [MAPS_PATH, WIDGETS_PATH], ids=["built-in", "custom"])
def test_options_of_lists_and_watches_are_refused_alike(both, path):
    """Every combination that is refused at once; those that are answered are lists of objects."""
    for version, match, initial, more in itertools.product(
        VERSIONS, MATCHES, ("", "true", "false", "maybe"), ("", "continue=x", "watch=1")
    ):
        query = f"resourceVersion={version}&resourceVersionMatch={match}&{more}"
        query += f"&sendInitialEvents={initial}" if initial else ""
        watches = more == "watch=1"
        if watches and (match in ("", "NotOlderThan")) and (bool(match) is bool(initial)):
            continue  # a stream
        ours, real = both.ours("GET", f"{path}?{query}"), both.real("GET", f"{path}?{query}")
        assert ours[0] == real[0], (query, ours, real)
        if ours[0] >= 400:
            assert comparable(*ours)[1:3] == comparable(*real)[1:3], (query, ours, real)
            causes = [
                answer["details"].get("causes") if answer.get("details") else None
                for _, answer in (ours, real)
            ]
            assert causes[0] == causes[1] or not causes[1], (query, causes)


UNUSABLE = (
    *(("POST", "application/json", body) for body in (
        b"", b"{", b"[]", b"5", b'"x"', b"{}", b"\xff", b"{} x", b'{"metadata":5}',
        b'{"kind":"Secret","apiVersion":"v1"}', b'{"metadata":{"name":5}}',
        b'{"metadata":{"labels":{"a":1}}}', b'{"metadata":{"name":"a\\u0000"}}',
        b'{"data":5,"spec":5,"metadata":{"name":"x"},"apiVersion":"v1"}',
        b'{"a":' * 12_000 + b"1" + b"}" * 12_000,
    )),
    *(("POST", "application/yaml", body) for body in (
        b"a: b: c", b"- x", b"{a: &a [*a]}", b"a: *x", b'"\\x"',
    )),
    *(("POST", "application/vnd.kubernetes.protobuf", body) for body in (
        b"", b"x", b"k8s\0", b"k8s\0\x08\x00", b"k8s\0\xff\xff",
    )),
    *(("POST", media, b"{}") for media in (
        "application/cbor", "text/plain", "application/x-www-form-urlencoded", "application/jsonx",
    )),
    *(("PATCH", MERGE, body) for body in (b"", b"{", b"[]", b"5")),
    *(("PATCH", JSON_PATCH, body) for body in (
        b"", b"{}", b"[5]", b'[{"op":"remove","path":"/nope"}]',
        b'[{"op":"test","path":"/kind","value":"x"}]',
    )),
    *(("PATCH", "application/cbor", b"{}"), ("PATCH", "application/json", b"{}")),
    *(("PATCH", APPLY, body) for body in (
        b"", b"{", b"[]", b"5", b'{"apiVersion":"v1"}', b'{"kind":"ConfigMap"}', b"a: b: c",
    )),
    *(("PUT", "application/json", body) for body in (b"{}", b'{"metadata":{"name":"other"}}')),
    ("DELETE", "application/json", b'{"dryRun":["Some"]}'),
    ("DELETE", "application/cbor", b"{}"),
)  # fmt: skip


@pytest.mark.parametrize("path", [MAPS_PATH, WIDGETS_PATH], ids=["built-in", "custom"])
def test_bodies_that_cannot_be_used_are_refused_alike(both, path):
    existing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unusable"}}
    for client in (both.ours, both.real):
        client("POST", path, existing if path == MAPS_PATH else widget("unusable"))
    for method, media, body in UNUSABLE:
        if "protobuf" in media and path == WIDGETS_PATH:
            continue  # Kubernetes' own fails, and closes the connection
        query = "?fieldManager=m" if media == APPLY else ""
        target = path if method == "POST" else f"{path}/unusable{query}"
        ours, real = (c(method, target, body, media) for c in (both.ours, both.real))
        assert 400 <= ours[0] < 500, (method, media, body[:60], ours)
        assert ours[0] == real[0], (method, media, body[:60], ours, real)


def shape(schema):
    """A definition as far as clients go by it: without texts, defaults and limits."""
    texts = ("description", "default", "title", "enum", "pattern", "format")
    if isinstance(schema, dict):
        return {
            key: {name: shape(part) for name, part in value.items()}
            if key == "properties"
            else shape(value)
            for key, value in schema.items()
            if key not in texts and key != "x-kubernetes-unions"
        }
    return schema


def test_the_definitions_of_openapi_v2_are_alike(both):
    (_, ours), (_, real) = (client("GET", "/openapi/v2") for client in (both.ours, both.real))
    compared = ours["definitions"].keys() & real["definitions"].keys()
    assert len(compared) > 150
    for name in sorted(compared - {"io.example.v1.Widget"}):
        mine, theirs = ours["definitions"][name], real["definitions"][name]
        assert mine.get("properties", {}).keys() == theirs.get("properties", {}).keys(), name
        for field, part in mine.get("properties", {}).items():
            assert shape(part) == shape(theirs["properties"][field]), (name, field)
