"""kubectl get and describe against the embedded API server."""

import json

import pytest

from tests.apiserver.conftest import job, pod, widget

pytestmark = pytest.mark.kubectl


def cells(line):
    return line.split()


def test_custom_columns_of_a_definition_are_shown(kubectl, namespace):
    label = {"cluster.x-k8s.io/cluster-name": "demo"}
    kubectl("create", "-f", "-", stdin=widget("w", namespace, labels=label, size=3, image="i:1"))
    status = {"conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]}
    kubectl.api.merge(
        f"/apis/example.io/v1/namespaces/{namespace}/widgets/w/status", {"status": status}
    )
    header, row = kubectl("get", "widgets").splitlines()
    assert cells(header) == ["NAME", "CLUSTER", "READY", "SIZE", "AGE"]
    assert cells(row)[:4] == ["w", "demo", "True", "3"]
    assert cells(row)[4].endswith("s")
    header, row = kubectl("get", "widgets", "-o", "wide").splitlines()
    assert cells(header) == ["NAME", "CLUSTER", "READY", "SIZE", "IMAGE", "AGE"]
    assert cells(row)[4] == "i:1"


@pytest.mark.parametrize("name", ["widgets", "widget", "wd", "Widget", "widgets.v1.example.io"])
def test_every_name_of_a_kind_is_understood(kubectl, namespace, name):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    assert kubectl("get", name, "-o", "name") == "widget.example.io/w\n"


def test_a_category_lists_all_its_kinds(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    assert kubectl("get", "gadgets", "-o", "name") == "widget.example.io/w\n"


def test_several_kinds_at_once(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=job("j", namespace))
    kubectl("create", "secret", "generic", "s", "--from-literal=k=v")
    names = kubectl("get", "jobs,secrets", "-o", "name").splitlines()
    assert names == ["job.batch/j", "secret/s"]
    assert "job.batch/j" in kubectl("get", "jobs,secrets")


def test_nothing_found_is_said(kubectl, namespace):
    done = kubectl.run("get", "widgets")
    assert done.returncode == 0
    assert f"No resources found in {namespace} namespace." in done.stderr


def test_an_absent_object_is_not_found(kubectl):
    error = kubectl.fails("get", "widget", "absent")
    assert error.startswith("Error from server (NotFound):")
    assert 'widgets.example.io "absent" not found' in error


def test_an_unknown_kind_is_refused(kubectl):
    error = kubectl.fails("get", "gizmos")
    assert "the server doesn't have a resource type" in error


def test_output_as_yaml_json_name_and_jsonpath(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace, size=7))
    yaml = kubectl("get", "widget", "w", "-o", "yaml")
    assert "kind: Widget" in yaml
    assert "  size: 7" in yaml
    assert "managedFields" not in yaml
    assert json.loads(kubectl("get", "widget", "w", "-o", "json"))["spec"]["color"] == "grey"
    assert kubectl("get", "widget", "w", "-o", "jsonpath={.spec.size}") == "7"
    assert kubectl("get", "wd", "-o", "jsonpath={.items[*].metadata.name}") == "w"
    custom = kubectl("get", "wd", "-o", "custom-columns=N:.metadata.name,S:.spec.size")
    assert [cells(line) for line in custom.splitlines()] == [["N", "S"], ["w", "7"]]


def test_managed_fields_are_shown_on_request(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace, size=7))
    shown = json.loads(kubectl("get", "widget", "w", "-o", "json", "--show-managed-fields"))
    (entry,) = shown["metadata"]["managedFields"]
    assert entry["manager"] == "kubectl-create"
    assert entry["operation"] == "Update"
    assert "f:size" in entry["fieldsV1"]["f:spec"]


def test_label_and_field_selectors(kubectl, namespace):
    for name, tier in (("a", "x"), ("b", "y"), ("c", "x")):
        kubectl("create", "-f", "-", stdin=widget(name, namespace, labels={"tier": tier}))
    assert kubectl("get", "wd", "-l", "tier=x", "-o", "name").split() == [
        "widget.example.io/a",
        "widget.example.io/c",
    ]
    assert kubectl("get", "wd", "-l", "tier notin (x)", "-o", "name").split() == [
        "widget.example.io/b"
    ]
    chosen = kubectl("get", "wd", "--field-selector", "metadata.name=c", "-o", "name")
    assert chosen.split() == ["widget.example.io/c"]
    header, *lines = kubectl("get", "wd", "-L", "tier", "--show-labels").splitlines()
    assert cells(header)[-2:] == ["TIER", "LABELS"]
    assert cells(lines[0])[-2:] == ["x", "tier=x"]


def test_long_lists_are_fetched_in_chunks(kubectl, namespace):
    for number in range(7):
        kubectl.api.ok(
            "POST",
            f"/apis/example.io/v1/namespaces/{namespace}/widgets",
            widget(f"w{number}", namespace),
        )
    listed = kubectl("get", "wd", "--chunk-size=3", "-o", "name").split()
    assert listed == [f"widget.example.io/w{number}" for number in range(7)]
    assert len(kubectl("get", "wd", "--chunk-size=3").splitlines()) == 8


def test_all_namespaces_adds_a_column(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    header, *lines = kubectl("get", "wd", "-A").splitlines()
    assert cells(header)[:2] == ["NAMESPACE", "NAME"]
    assert [namespace, "w"] in [cells(line)[:2] for line in lines]


def test_sorting_by_a_field(kubectl, namespace):
    for name, size in (("a", 3), ("b", 1), ("c", 2)):
        kubectl("create", "-f", "-", stdin=widget(name, namespace, size=size))
    lines = kubectl("get", "wd", "--sort-by=.spec.size", "--no-headers").splitlines()
    assert [cells(line)[0] for line in lines] == ["b", "c", "a"]


def test_watching_shows_each_change(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace, size=1))
    watch = kubectl.start("get", "widget", "w", "-w", "--no-headers")
    assert cells(watch.stdout.readline())[:2] == ["w", "1"]
    kubectl.api.merge(
        f"/apis/example.io/v1/namespaces/{namespace}/widgets/w", {"spec": {"size": 2}}
    )
    assert cells(watch.stdout.readline())[:2] == ["w", "2"]


def test_watching_tells_the_kind_of_each_change(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    watch = kubectl.start("get", "wd", "-w", "--output-watch-events", "--no-headers")
    assert cells(watch.stdout.readline())[:2] == ["ADDED", "w"]
    kubectl.api.ok("DELETE", f"/apis/example.io/v1/namespaces/{namespace}/widgets/w")
    assert cells(watch.stdout.readline())[:2] == ["DELETED", "w"]


def test_pods_are_shown_with_their_state(kubectl, namespace):
    path = f"/api/v1/namespaces/{namespace}/pods"
    kubectl.api.ok("POST", path, pod("p", namespace, "a", "b"))
    header, row = kubectl("get", "pods").splitlines()
    assert cells(header) == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert cells(row)[:4] == ["p", "0/2", "Pending", "0"]
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    kubectl.api.merge(
        f"{path}/p/status",
        {
            "status": {
                "phase": "Running",
                "containerStatuses": [
                    {
                        "name": n,
                        "ready": True,
                        "restartCount": 1,
                        "image": "i",
                        "imageID": "",
                        "state": running,
                    }
                    for n in ("a", "b")
                ],
            }
        },
    )
    assert cells(kubectl("get", "pods", "--no-headers"))[:4] == ["p", "2/2", "Running", "2"]
    ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
    kubectl.api.merge(
        f"{path}/p/status",
        {
            "status": {
                "phase": "Failed",
                "containerStatuses": [
                    {
                        "name": "a",
                        "ready": False,
                        "restartCount": 0,
                        "image": "i",
                        "imageID": "",
                        "state": ended,
                    }
                ],
            }
        },
    )
    assert cells(kubectl("get", "pods", "--no-headers"))[:3] == ["p", "0/2", "Error"]
    assert cells(kubectl("get", "pods", "-o", "wide").splitlines()[0])[5:7] == ["IP", "NODE"]


def test_jobs_are_shown_with_their_state(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=job("j", namespace))
    header, row = kubectl("get", "jobs").splitlines()
    assert cells(header) == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert cells(row)[:3] == ["j", "Running", "0/1"]
    kubectl.api.merge(
        f"/apis/batch/v1/namespaces/{namespace}/jobs/j/status",
        {
            "status": {
                "succeeded": 1,
                "startTime": "2026-01-01T00:00:00Z",
                "completionTime": "2026-01-01T00:01:05Z",
                "conditions": [
                    {"type": "SuccessCriteriaMet", "status": "True"},
                    {"type": "Complete", "status": "True"},
                ],
            }
        },
    )
    assert cells(kubectl("get", "jobs", "--no-headers"))[:4] == ["j", "Complete", "1/1", "65s"]
    wide = kubectl("get", "jobs", "-o", "wide").splitlines()
    assert cells(wide[0])[5:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert cells(wide[1])[5:7] == ["main", "registry.example/i:1"]


def test_the_other_built_in_kinds_have_their_columns(kubectl, namespace):
    kubectl("create", "secret", "generic", "s", "--from-literal=a=1", "--from-literal=b=2")
    kubectl("create", "configmap", "c", "--from-literal=a=1")
    kubectl("create", "serviceaccount", "sa")
    kubectl("create", "role", "r", "--verb=get", "--resource=pods")
    kubectl("create", "rolebinding", "rb", "--role=r", f"--serviceaccount={namespace}:sa")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {"holderIdentity": "me"},
    }
    kubectl("create", "-f", "-", stdin=lease)

    def shown(kind):
        return [cells(line) for line in kubectl("get", kind).splitlines()]

    assert shown("secrets")[0] == ["NAME", "TYPE", "DATA", "AGE"]
    assert shown("secrets")[1][:3] == ["s", "Opaque", "2"]
    assert shown("cm")[0] == ["NAME", "DATA", "AGE"]
    assert ["c", "1"] in [row[:2] for row in shown("cm")]
    assert "sa" in [row[0] for row in shown("serviceaccounts")]
    assert shown("leases")[0] == ["NAME", "HOLDER", "AGE"]
    assert shown("leases")[1][:2] == ["l", "me"]
    assert shown("roles")[0] == ["NAME", "CREATED", "AT"]
    assert shown("rolebindings")[1][:2] == ["rb", "Role/r"]
    wide = kubectl("get", "rolebindings", "-o", "wide").splitlines()
    assert cells(wide[1])[-1] == f"{namespace}/sa"
    assert [namespace, "Active"] in [row[:2] for row in shown("namespaces")]
    assert "widgets.example.io" in [row[0] for row in shown("crds")]


def test_nodes_are_shown_with_their_state(kubectl):
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/worker": ""}},
    }
    kubectl.api.call("POST", "/api/v1/nodes", node)
    kubectl.api.merge(
        "/api/v1/nodes/n/status",
        {
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": "v1"},
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            }
        },
    )
    header, row = kubectl("get", "nodes").splitlines()
    assert cells(header) == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert cells(row)[:3] == ["n", "Ready", "worker"]
    assert "127.0.0.1" in kubectl("get", "nodes", "-o", "wide")
    assert "InternalIP:" in kubectl("describe", "node", "n")


def test_events_are_shown_and_found_by_object(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    uid = kubectl("get", "wd", "w", "-o", "jsonpath={.metadata.uid}")
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "w.1", "namespace": namespace},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "captf.io/manager",
        "reportingInstance": "here",
        "action": "Apply",
        "reason": "RunStarted",
        "type": "Normal",
        "note": "apply started",
        "regarding": {
            "apiVersion": "example.io/v1",
            "kind": "Widget",
            "namespace": namespace,
            "name": "w",
            "uid": uid,
        },
    }
    kubectl.api.ok("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event)
    for command in (("get", "events"), ("events",), ("events", "--for", "widget/w")):
        text = kubectl(*command)
        assert cells(text.splitlines()[0])[:3] == ["LAST", "SEEN", "TYPE"]
        assert "RunStarted" in text
        assert "apply started" in text
        assert "/w" in text.lower()
    assert "events.k8s.io" in kubectl("get", "events.events.k8s.io", "-o", "yaml")
    described = kubectl("describe", "widget", "w")
    assert "RunStarted" in described
    assert "captf.io/manager" in described
    assert "No events" in kubectl.run("events", "--for", "widget/other").stderr


def test_describing_shows_what_there_is(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace, size=3))
    text = kubectl("describe", "wd", "w")
    assert "Name:         w" in text
    assert "Size:   3" in text
    assert "Events:" in text


def test_describing_built_in_kinds(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=job("j", namespace))
    kubectl("create", "-f", "-", stdin=pod("p", namespace))
    kubectl("create", "secret", "generic", "s", "--from-literal=k=hush")
    assert "Parallelism:      1" in kubectl("describe", "job", "j")
    assert "registry.example/i:1" in kubectl("describe", "pod", "p")
    text = kubectl("describe", "secret", "s")
    assert "k:  4 bytes" in text
    assert "hush" not in text
    assert f"Name:         {namespace}" in kubectl("describe", "namespace", namespace)
    assert "widgets.example.io" in kubectl("describe", "crd", "widgets.example.io")
    kubectl("create", "serviceaccount", "sa")
    assert "Name:                sa" in kubectl("describe", "serviceaccount", "sa")
