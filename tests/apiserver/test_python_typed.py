"""Every typed call of the official Python client, for every kind that is served.

The client refuses an answer that lacks a field which Kubernetes' schema requires.
"""

import re

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

from tests.apiserver.examples import EXAMPLES

APIS = {
    "v1": client.CoreV1Api,
    "batch/v1": client.BatchV1Api,
    "coordination.k8s.io/v1": client.CoordinationV1Api,
    "events.k8s.io/v1": client.EventsV1Api,
    "rbac.authorization.k8s.io/v1": client.RbacAuthorizationV1Api,
    "apiextensions.k8s.io/v1": client.ApiextensionsV1Api,
    "admissionregistration.k8s.io/v1": client.AdmissionregistrationV1Api,
}
TYPED = [example for example in EXAMPLES if example.api_version in APIS]


@pytest.fixture(scope="module")
def connection(api):
    made = config.new_client_from_config(str(api.server.kubeconfig_path))
    yield made
    made.close()


class Calls:
    """The client's methods for one kind, by verb."""

    def __init__(self, connection, example, namespace):
        self._api = APIS[example.api_version](connection)
        self._kind = re.sub(r"(?<!^)(?=[A-Z])", "_", example.kind).lower()
        self._scope = "namespaced_" if example.namespaced else ""
        self._where = [namespace] if example.namespaced else []

    def __call__(self, verb, *names, body=None, part="", **options):
        method = getattr(self._api, f"{verb}_{self._scope}{self._kind}{part}")
        return method(*names, *self._where, *([] if body is None else [body]), **options)

    def everywhere(self, **options):
        suffix = "_for_all_namespaces" if self._scope else ""
        return getattr(self._api, f"list_{self._kind}{suffix}")(**options)

    def watched_until(self, last, since, label):
        """What a watch tells after an object was made, up to `last`."""
        told = []
        stream = watch.Watch().stream(
            getattr(self._api, f"list_{self._scope}{self._kind}"),
            *self._where,
            resource_version=since.metadata.resource_version,
            label_selector=f"run={label}",
            timeout_seconds=30,
        )
        for event in stream:
            told.append((event["type"], event["object"].metadata.name))
            if told[-1] == last:
                break
        return told


@pytest.mark.parametrize("example", TYPED, ids=lambda e: f"{e.api_version}-{e.kind}")
def test_every_call_of_a_kind(api, connection, namespace, example):
    call = Calls(connection, example, namespace)
    first, second = labelled(example, "one", namespace), labelled(example, "two", namespace)
    name, other = first["metadata"]["name"], second["metadata"]["name"]
    made = call("create", body=first)
    assert (made.kind, made.metadata.name) == (example.kind, name)
    assert call("read", name).metadata.uid == made.metadata.uid
    for found in (call("list"), call.everywhere(label_selector=f"run={namespace}")):
        assert name in [item.metadata.name for item in found.items]
    made.metadata.annotations = {"a": "1"}
    assert call("replace", name, body=made).metadata.annotations == {"a": "1"}
    patched = call("patch", name, body={"metadata": {"annotations": {"b": "2"}}})
    assert patched.metadata.annotations == {"a": "1", "b": "2"}
    if example.status is not None:
        reported = call("patch", name, body={"status": example.status}, part="_status")
        again = call("replace", name, body=reported, part="_status")
        assert again.to_dict()["status"] == reported.to_dict()["status"]
        assert call("read", name, part="_status").metadata.uid == made.metadata.uid
    call("create", body=second)
    assert ("MODIFIED", name) in call.watched_until(("ADDED", other), made, namespace)
    call("delete", name, grace_period_seconds=0)
    if example.kind == "Namespace":  # the namespace controller's to end; there is no collection
        assert call("read", name).status.phase == "Terminating"
        return
    with pytest.raises(ApiException) as refused:
        call("read", name)
    assert refused.value.status == 404
    call("delete_collection", label_selector=f"run={namespace}")
    assert call.everywhere(label_selector=f"run={namespace}").items == []


def labelled(example, name, namespace):
    document = example.named(name, namespace)
    document["metadata"]["labels"] = {"run": namespace}
    if example.kind == "Namespace":
        document["metadata"]["name"] = f"{name}-{namespace}"[:63]
    return document


def test_a_pod_that_nobody_has_reported_about_yet(connection, namespace):
    """What is false, zero or empty is there all the same."""
    pods = next(example for example in TYPED if example.kind == "Pod")
    call = Calls(connection, pods, namespace)
    call("create", body=pods.named("p", namespace))
    half = {"containerStatuses": [{"name": "main"}], "conditions": [{"type": "Ready"}]}
    call("patch", "p", body={"status": half}, part="_status")
    (listed,) = call("list").items
    (container,) = listed.status.container_statuses
    assert (container.ready, container.restart_count) == (False, 0)
    assert (container.image, container.image_id) == ("", "")
    assert listed.status.conditions[0].status == ""


REVIEWS = (
    (client.AuthenticationV1Api, "create_self_subject_review", client.V1SelfSubjectReview()),
    (
        client.AuthenticationV1Api,
        "create_token_review",
        client.V1TokenReview(spec=client.V1TokenReviewSpec(token="unknown")),
    ),
    (
        client.AuthorizationV1Api,
        "create_self_subject_access_review",
        client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec()),
    ),
    (
        client.AuthorizationV1Api,
        "create_self_subject_rules_review",
        client.V1SelfSubjectRulesReview(spec=client.V1SelfSubjectRulesReviewSpec()),
    ),
    (
        client.AuthorizationV1Api,
        "create_subject_access_review",
        client.V1SubjectAccessReview(spec=client.V1SubjectAccessReviewSpec(user="u")),
    ),
)


@pytest.mark.parametrize(("group", "method", "body"), REVIEWS, ids=lambda value: str(value)[:30])
def test_every_review(connection, group, method, body):
    assert getattr(group(connection), method)(body).status is not None


def test_tokens_bindings_and_finalizers(connection, namespace):
    core = client.CoreV1Api(connection)
    by_kind = {example.kind: example for example in TYPED}
    core.create_namespaced_service_account(
        namespace, by_kind["ServiceAccount"].named("robot", namespace)
    )
    asked = client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(audiences=["a"], expiration_seconds=600)
    )
    issued = core.create_namespaced_service_account_token("robot", namespace, asked)
    assert issued.status.token
    core.create_namespaced_pod(namespace, by_kind["Pod"].named("p", namespace))
    core.create_namespaced_pod_binding(
        "p",
        namespace,
        client.V1Binding(target=client.V1ObjectReference(kind="Node", name="n")),
        _preload_content=False,  # the client takes the Status that answers for a Binding
    )
    assert core.read_namespaced_pod("p", namespace).spec.node_name == "n"
    space = core.read_namespace(namespace)
    assert core.replace_namespace_finalize(namespace, space).spec.finalizers == ["kubernetes"]


def test_what_a_server_tells_about_itself(connection):
    assert client.VersionApi(connection).get_code().git_version
    assert client.CoreApi(connection).get_api_versions().versions == ["v1"]
    groups = client.ApisApi(connection).get_api_versions().groups
    assert "batch" in [group.name for group in groups]
    for api_class in set(APIS.values()):
        assert api_class(connection).get_api_resources().resources


def test_there_is_an_example_of_every_kind_that_is_served(api):
    served = {(one.resource.api_version, one.resource.kind) for one in api.store.registry}
    assert served == {(example.api_version, example.kind) for example in EXAMPLES}
