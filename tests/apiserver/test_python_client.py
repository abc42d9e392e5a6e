"""The `kubernetes` Python client against the embedded API server."""

import pytest
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

from tests.apiserver.conftest import job, pod, widget


@pytest.fixture
def connection(api):
    made = config.new_client_from_config(str(api.server.kubeconfig_path))
    yield made
    made.close()


def test_typed_objects(connection, namespace):
    core = client.CoreV1Api(connection)
    body = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"k": "v"})
    made = core.create_namespaced_secret(namespace, body)
    assert made.data == {"k": "dg=="}
    assert made.metadata.uid
    made.data["l"] = "dg=="
    replaced = core.replace_namespaced_secret("s", namespace, made)
    assert sorted(replaced.data) == ["k", "l"]
    patched = core.patch_namespaced_secret("s", namespace, {"metadata": {"labels": {"a": "b"}}})
    assert patched.metadata.labels == {"a": "b"}
    listed = core.list_namespaced_secret(namespace, label_selector="a=b")
    assert [item.metadata.name for item in listed.items] == ["s"]
    core.delete_namespaced_secret("s", namespace)
    with pytest.raises(ApiException) as refused:
        core.read_namespaced_secret("s", namespace)
    assert refused.value.status == 404


def test_jobs_and_their_status(connection, namespace):
    batch = client.BatchV1Api(connection)
    made = batch.create_namespaced_job(namespace, job("j", namespace))
    assert made.spec.backoff_limit == 6
    status = {"status": {"active": 1, "startTime": "2026-01-01T00:00:00Z"}}
    assert batch.patch_namespaced_job_status("j", namespace, status).status.active == 1


def test_custom_objects(connection, namespace):
    custom = client.CustomObjectsApi(connection)
    where = ("example.io", "v1", namespace, "widgets")
    custom.create_namespaced_custom_object(*where, widget("w", namespace, size=1))
    patched = custom.patch_namespaced_custom_object(*where, "w", {"spec": {"size": 2}})
    assert patched["spec"] == {"size": 2, "color": "grey"}
    listed = custom.list_namespaced_custom_object(*where)
    assert listed["kind"] == "WidgetList"
    assert len(listed["items"]) == 1


def test_watching(connection, namespace):
    core = client.CoreV1Api(connection)
    version = core.list_namespaced_pod(namespace).metadata.resource_version
    core.create_namespaced_pod(namespace, pod("p", namespace))
    core.delete_namespaced_pod("p", namespace)
    stream = watch.Watch().stream(
        core.list_namespaced_pod, namespace, resource_version=version, timeout_seconds=5
    )
    seen = []
    for event in stream:
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            break
    assert seen == [("ADDED", "p"), ("DELETED", "p")]


def test_the_dynamic_client_finds_kinds(connection, namespace):
    found = dynamic.DynamicClient(connection)
    widgets = found.resources.get(api_version="example.io/v1", kind="Widget")
    widgets.create(widget("w", namespace), namespace=namespace)
    applied = widgets.server_side_apply(
        widget("w", namespace, size=3), namespace=namespace, field_manager="py", force=True
    )
    assert applied.spec.size == 3


def test_logs(connection, api, namespace):
    core = client.CoreV1Api(connection)
    core.create_namespaced_pod(namespace, pod("p", namespace, nodeName="n"))
    core.patch_namespaced_pod_status("p", namespace, {"status": {"phase": "Running"}})
    api.logs.lines[namespace, "p", "main"] = [b"one\n", b"two\n"]
    assert core.read_namespaced_pod_log("p", namespace) == "one\ntwo\n"
    lines = api.logs.lines[namespace, "p", "main"]
    followed = core.read_namespaced_pod_log("p", namespace, follow=True, _preload_content=False)
    pieces = followed.stream()
    text = next(pieces)
    lines.append(b"END\n")
    assert (text + b"".join(pieces)).decode() == "one\ntwo\nEND\n"
    followed.release_conn()
