"""What goes over the wire, what comes back as, and which error each refusal is."""

import base64
import json

import pytest

from captfctl.cluster import errors
from captfctl.cluster.door import Propagation
from captfctl.model.core import ConfigMap, Secret, TokenRequest
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTERS,
)
from tests.live.api import Answer, status


def named(name, version="7", **rest):
    return {"metadata": {"name": name, "namespace": "team-a", "resourceVersion": version}, **rest}


def test_a_get_decodes_into_the_kinds_own_type(api, door):
    api.answer(named("s", data={"k": base64.b64encode(b"\0raw").decode()}, kind="Secret"))
    secret = door.get(SECRETS, "s", "team-a")
    assert isinstance(secret, Secret)
    assert secret.data == {"k": b"\0raw"}
    (seen,) = api.seen
    assert (seen.method, seen.path) == ("GET", "/api/v1/namespaces/team-a/secrets/s")
    assert "Authorization" not in seen.headers  # the server is reached by HTTP


def test_items_of_a_list_carry_the_kind_that_lists_of_built_in_kinds_leave_out(api, door):
    meta = {"resourceVersion": "9", "continue": "more", "remainingItemCount": 3}
    api.answer({"kind": "ConfigMapList", "metadata": meta, "items": [named("a"), named("b")]})
    page = door.list(CONFIG_MAPS, "team-a", labels="a=b", fields="metadata.name=a", limit=2)
    assert [(item.kind, item.api_version) for item in page.items] == [("ConfigMap", "v1")] * 2
    assert (page.resource_version, page.continue_token, page.remaining) == ("9", "more", 3)
    assert api.seen[0].query == {
        "labelSelector": "a=b",
        "fieldSelector": "metadata.name=a",
        "limit": "2",
    }


def test_lists_of_untyped_objects_are_documents_with_their_kind(api, door):
    api.answer({"metadata": {"resourceVersion": "9"}, "items": [named("a", data={"x": "y"})]})
    (item,) = door.list(CONFIG_MAPS.untyped()).items
    assert (item["kind"], item["apiVersion"], item["data"]) == ("ConfigMap", "v1", {"x": "y"})
    assert api.seen[0].path == "/api/v1/configmaps"


def test_a_list_of_nothing_may_be_null(api, door):
    api.answer({"metadata": {"resourceVersion": "9"}, "items": None})
    assert door.list(CONFIG_MAPS).items == []


def test_the_continue_token_and_version_are_passed_on(api, door):
    api.answer({"metadata": {}, "items": []})
    door.list(CONFIG_MAPS, continue_token="a b+c", resource_version="5")
    assert api.seen[0].query == {"continue": "a b+c", "resourceVersion": "5"}


def test_metadata_alone_is_asked_for_and_keeps_its_true_kind(api, door):
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    api.answer({"metadata": {}, "items": [named("a", **partial)]})
    api.answer(named("a", **partial))
    resource = SECRETS.metadata_only()
    (item,) = door.list(resource).items
    one = door.get(resource, "a", "team-a")
    assert (item.kind, item.api_version, item.metadata.name) == ("Secret", "v1", "a")
    assert one == item
    accepts = [seen.headers["Accept"].split(",")[0] for seen in api.seen]
    assert accepts == [
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    ]


def test_a_create_names_kind_and_field_manager_and_leaves_the_callers_object_alone(api, connect):
    door = connect(api.url, field_owner="captf-manager")
    api.answer(named("a"), code=201)
    mine = ConfigMap(metadata=ObjectMeta(name="a", namespace="team-a"), data={"x": "y"})
    created = door.create(CONFIG_MAPS, mine)
    assert created.metadata.resource_version == "7"
    assert mine.kind == ""
    (seen,) = api.seen
    assert (seen.method, seen.path) == ("POST", "/api/v1/namespaces/team-a/configmaps")
    assert seen.query == {"fieldManager": "captf-manager"}
    assert (seen.body["kind"], seen.body["apiVersion"]) == ("ConfigMap", "v1")


def test_an_update_replaces_the_object_or_a_subresource(api, door):
    api.answer(named("a"))
    api.answer(named("a"))
    document = {"metadata": {"name": "a", "namespace": "team-a", "resourceVersion": "3"}}
    door.update(TERRAFORM_CLUSTERS.untyped(), document)
    door.update(TERRAFORM_CLUSTERS.untyped(), document, subresource="status")
    path = "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/team-a/terraformclusters/a"
    assert [(seen.method, seen.path) for seen in api.seen] == [
        ("PUT", path),
        ("PUT", f"{path}/status"),
    ]
    assert api.seen[0].body["kind"] == "TerraformCluster"


def test_a_patch_is_a_merge_patch_bound_to_a_version_when_one_is_given(api, door):
    api.answer(named("a"))
    patch = {"metadata": {"annotations": {"x": None}}, "data": {"y": "z"}}
    door.patch(CONFIG_MAPS, "a", "team-a", patch, resource_version="3")
    (seen,) = api.seen
    assert seen.method == "PATCH"
    assert seen.headers["Content-Type"] == "application/merge-patch+json"
    assert seen.body["metadata"] == {"annotations": {"x": None}, "resourceVersion": "3"}
    assert "resourceVersion" not in patch["metadata"]


def test_a_delete_names_its_preconditions(api, door):
    api.answer({"kind": "Status"})
    api.answer({"kind": "Status"})
    door.delete(
        CONFIG_MAPS,
        "a",
        "team-a",
        uid="u1",
        resource_version="3",
        propagation=Propagation.FOREGROUND,
        grace_period_seconds=0,
    )
    door.delete(CONFIG_MAPS, "a", "team-a")
    kind = {"apiVersion": "v1", "kind": "DeleteOptions"}
    assert api.seen[0].body == {
        **kind,
        "preconditions": {"uid": "u1", "resourceVersion": "3"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
    }
    assert api.seen[1].body == kind


def test_a_subresource_is_created_and_answered_in_its_own_type(api, door):
    api.answer({"kind": "TokenRequest", "status": {"token": "abc"}}, code=201)
    body = TokenRequest(spec={"audiences": []})
    made = door.create_subresource(
        SERVICE_ACCOUNTS, "runner", "team-a", "token", body, TokenRequest
    )
    assert made.status == {"token": "abc"}
    assert api.seen[0].path == "/api/v1/namespaces/team-a/serviceaccounts/runner/token"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_a_name_that_would_make_another_path_is_refused_before_it_is_sent(api, door, name):
    with pytest.raises(errors.BadRequest):
        door.get(CONFIG_MAPS, name, "team-a")
    assert api.seen == []


def test_a_namespaced_object_needs_its_namespace(api, door):
    with pytest.raises(errors.BadRequest, match="namespace is missing"):
        door.delete(CONFIG_MAPS, "a")
    assert api.seen == []


def test_names_with_colons_reach_the_server_as_they_are(api, door):
    api.answer(named("system:node"))
    door.get(NAMESPACES, "system:node")
    assert api.seen[0].path == "/api/v1/namespaces/system:node"


REFUSALS = [
    (400, "BadRequest", errors.BadRequest),
    (403, "Forbidden", errors.Forbidden),
    (404, "NotFound", errors.NotFound),
    (405, "MethodNotAllowed", errors.MethodNotAllowed),
    (409, "Conflict", errors.Conflict),
    (409, "AlreadyExists", errors.AlreadyExists),
    (410, "Expired", errors.Gone),
    (413, "RequestEntityTooLarge", errors.TooLarge),
    (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
    (418, "Teapot", errors.ApiError),
]


@pytest.mark.parametrize(("code", "reason", "kind"), REFUSALS)
def test_each_refusal_is_its_own_error_with_the_servers_words(api, door, code, reason, kind):
    api.answers.append(status(code, reason, "what the server says"))
    with pytest.raises(errors.ApiError) as refused:
        door.get(CONFIG_MAPS, "a", "team-a")
    assert type(refused.value) is kind
    assert "what the server says" in str(refused.value)


def test_an_invalid_object_keeps_every_cause(api, door):
    causes = [
        {"field": "spec.a", "message": "Required value", "reason": "FieldValueRequired"},
        {"field": "spec.b", "message": "too long"},
    ]
    api.answers.append(status(422, "Invalid", 'X "a" is invalid', causes=causes))
    with pytest.raises(errors.Invalid) as refused:
        door.update(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="a", namespace="team-a")))
    assert [(c.field, c.message, c.reason) for c in refused.value.causes] == [
        ("spec.a", "Required value", "FieldValueRequired"),
        ("spec.b", "too long", "FieldValueInvalid"),
    ]


def test_an_unauthorized_request_says_who_asked_whom_and_what_to_do(api, door):
    api.answers += [status(401, "Unauthorized", "Unauthorized")] * 2
    with pytest.raises(errors.Unauthorized) as refused:
        door.get(CONFIG_MAPS, "a", "team-a")
    assert api.url in refused.value.what
    assert 'user "ann" of context "test"' in refused.value.what
    assert refused.value.do
    assert "t0ken" not in repr(vars(refused.value))


def test_a_forbidden_request_says_who_and_what(api, door):
    words = 'configmaps "a" is forbidden: User "ann" cannot get resource "configmaps"'
    api.answers.append(status(403, "Forbidden", words))
    with pytest.raises(errors.Forbidden) as refused:
        door.get(CONFIG_MAPS, "a", "team-a")
    assert words in str(refused.value)
    assert 'user "ann"' in refused.value.do


def test_a_resource_that_the_server_does_not_serve_points_to_the_definitions(api, door):
    api.answer(b"404 page not found\n", code=404)
    with pytest.raises(errors.NotFound) as refused:
        door.list(TERRAFORM_CLUSTERS, "team-a")
    assert "terraformclusters" in refused.value.what
    assert "CustomResourceDefinition" in refused.value.do


def test_a_proxys_page_is_not_quoted(api, door):
    api.answer(b"<html>internal secrets of the proxy</html>", code=403)
    with pytest.raises(errors.Forbidden) as refused:
        door.get(CONFIG_MAPS, "a", "team-a")
    assert "secrets" not in repr(vars(refused.value))


def test_etcds_own_limit_is_told_as_too_large(api, door):
    api.answers.append(status(500, "InternalError", "etcdserver: request is too large"))
    with pytest.raises(errors.TooLarge):
        door.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="a", namespace="team-a")))


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_after_a_server_error_a_writes_outcome_is_unknown_and_a_reads_is_not(api, door, code):
    api.answers += [status(code, "", "etcd is slow")] * 2
    with pytest.raises(errors.Unavailable) as read:
        door.get(CONFIG_MAPS, "a", "team-a")
    with pytest.raises(errors.Unavailable) as written:
        door.patch(CONFIG_MAPS, "a", "team-a", {})
    assert (read.value.outcome_unknown, written.value.outcome_unknown) == (False, True)
    assert "etcd is slow" in str(written.value)


def test_an_answer_of_another_shape_names_place_and_types_and_no_value(api, door):
    api.answer(named("a", data="a-secret-value"))
    with pytest.raises(errors.ApiError) as refused:
        door.get(SECRETS, "a", "team-a")
    assert "$.data" in str(refused.value)
    assert "a-secret-value" not in str(refused.value)


def test_an_answer_that_is_not_json_is_an_error(api, door):
    api.answer(b"{")
    with pytest.raises(errors.ApiError, match="cannot be read"):
        door.get(CONFIG_MAPS, "a", "team-a")


def test_redirects_are_not_followed(api, door):
    api.answer(b"", code=307, Location="http://127.0.0.1:1/")
    with pytest.raises(errors.ApiError):
        door.get(CONFIG_MAPS, "a", "team-a")
    assert len(api.seen) == 1


def test_dates_and_bytes_are_written_as_kubernetes_writes_them(api, door):
    api.answer(named("s"), code=201)
    secret = Secret(metadata=ObjectMeta(name="s", namespace="team-a"), data={"k": b"v"})
    door.create(SECRETS, secret)
    assert api.seen[0].body["data"] == {"k": base64.b64encode(b"v").decode()}


def test_an_answers_body_may_be_empty_for_a_delete(api, door):
    api.answers.append(Answer(200, b""))
    door.delete(CONFIG_MAPS, "a", "team-a")
    assert json.dumps(api.seen[0].body)
