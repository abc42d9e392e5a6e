"""The API server as seen through plain HTTPS: users, errors, forms, watches, limits."""

import json
import ssl
import time
from http.client import HTTPSConnection

import pytest

from tests.apiserver.conftest import job, pod, widget

MERGE = {"Content-Type": "application/merge-patch+json"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
PARTIALS = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


def widgets(namespace):
    return f"/apis/example.io/v1/namespaces/{namespace}/widgets"


# --- users -------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["Bearer wrong", "Basic abc", "", "Bearer a.b.c", "Bearer é"])
def test_a_request_without_a_good_token_is_refused(api, header):
    headers = {"Authorization": header.encode("utf-8").decode("latin-1")}
    status, answer = api.call("GET", "/api/v1/secrets", headers=headers)
    assert status == 401
    assert answer["kind"] == "Status"
    assert answer["reason"] == "Unauthorized"
    assert "items" not in answer


def test_health_and_version_need_no_token(api):
    for path in ("/healthz", "/livez", "/readyz"):
        with api.request("GET", path, headers={"Authorization": ""}) as answer:
            assert answer.read() == b"ok"
    assert api.ok("GET", "/version", headers={"Authorization": ""})["minor"] == "32"


IMPERSONATION = (
    {"Impersonate-User": "x"},
    {"Impersonate-User": "x", "Impersonate-Group": "system:masters"},
    {"Impersonate-Group": "g"},
    {"Impersonate-Uid": "u"},
    {"Impersonate-Extra-Scopes": "all"},
)


@pytest.mark.parametrize("headers", IMPERSONATION, ids=lambda headers: "+".join(headers))
def test_a_request_in_somebody_elses_name_is_refused(api, headers):
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    for method, path, body in (
        ("GET", "/api/v1/secrets", None),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review),
    ):
        status, answer = api.call(method, path, body, headers=headers)
        assert (status, answer["reason"]) == (403, "Forbidden")
        assert "cannot impersonate" in answer["message"]


def issue(api, namespace, **spec):
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "robot", "namespace": namespace},
    }
    api.ok("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return api.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/robot/token", request)


def whoami(api, token):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    return api.call("POST", path, review, token=token)


def test_an_issued_token_speaks_for_its_service_account(api, namespace):
    status, answer = issue(api, namespace, expirationSeconds=600)
    assert status == 201
    assert answer["status"]["expirationTimestamp"]
    user = whoami(api, answer["status"]["token"])[1]["status"]["userInfo"]
    assert user["username"] == f"system:serviceaccount:{namespace}:robot"
    assert f"system:serviceaccounts:{namespace}" in user["groups"]


def test_a_token_bound_to_a_pod_tells_which(api, namespace):
    made = api.ok(
        "POST",
        f"/api/v1/namespaces/{namespace}/pods",
        pod("p", namespace, serviceAccountName="robot"),
    )
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": made["metadata"]["uid"]}
    status, answer = issue(api, namespace, boundObjectRef=bound)
    assert status == 201, answer
    user = whoami(api, answer["status"]["token"])[1]["status"]["userInfo"]
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]


def test_a_token_ends_with_its_service_account(api, namespace):
    token = issue(api, namespace)[1]["status"]["token"]
    assert whoami(api, token)[0] == 201
    api.ok("DELETE", f"/api/v1/namespaces/{namespace}/serviceaccounts/robot")
    assert whoami(api, token)[0] == 401


def test_a_token_that_was_tampered_with_is_refused(api, namespace):
    token = issue(api, namespace)[1]["status"]["token"]
    head, claims, signature = token.split(".")
    assert whoami(api, f"{head}.{claims[:-2]}AA.{signature}")[0] == 401
    assert whoami(api, f"{head}.{claims}.{signature[:-2]}AA")[0] == 401


def test_a_token_for_a_very_short_time_is_refused(api, namespace):
    status, answer = issue(api, namespace, expirationSeconds=5)
    assert status == 422
    assert answer["details"]["causes"][0]["field"] == "spec.expirationSeconds"


def test_tokens_can_be_reviewed(api, namespace):
    token = issue(api, namespace)[1]["status"]["token"]
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1"}
    good = api.ok("POST", path, review | {"spec": {"token": token}})["status"]
    assert good["authenticated"] is True
    assert good["user"]["username"].endswith(":robot")
    bad = api.ok("POST", path, review | {"spec": {"token": "x"}})["status"]
    assert bad["authenticated"] is False


def test_access_reviews_say_yes(api, namespace):
    group = "/apis/authorization.k8s.io/v1"
    for path in (
        f"{group}/selfsubjectaccessreviews",
        f"{group}/subjectaccessreviews",
        f"{group}/namespaces/{namespace}/localsubjectaccessreviews",
    ):
        assert api.ok("POST", path, {"spec": {}})["status"]["allowed"] is True
    rules = api.ok("POST", f"{group}/selfsubjectrulesreviews", {"spec": {}})["status"]
    assert rules["resourceRules"][0]["verbs"] == ["*"]


# --- errors ------------------------------------------------------------------------------------


def test_not_found_names_the_object(api, namespace):
    status, answer = api.call("GET", f"/api/v1/namespaces/{namespace}/secrets/absent")
    assert status == 404
    assert (answer["reason"], answer["code"]) == ("NotFound", 404)
    assert answer["details"] == {"name": "absent", "kind": "secrets"}
    _, answer = api.call("GET", f"{widgets(namespace)}/absent")
    assert answer["details"] == {"name": "absent", "group": "example.io", "kind": "widgets"}


@pytest.mark.parametrize(
    "path", ["/nowhere", "/api/v2", "/apis/absent.io/v1", "/apis/batch/v1/gizmos", "/openapi/v4"]
)
def test_what_is_not_served_is_not_found(api, path):
    status, answer = api.call("GET", path)
    assert status == 404
    assert answer["reason"] == "NotFound"


def test_invalid_objects_list_every_cause(api, namespace):
    body = widget("w", namespace, size=-1, hosts=[{"name": "no ip"}])
    status, answer = api.call("POST", widgets(namespace), body)
    assert status == 422
    assert answer["reason"] == "Invalid"
    details = answer["details"]
    assert (details["kind"], details["name"]) == ("Widget", "w")
    assert {cause["field"] for cause in details["causes"]} == {"spec.size", "spec.hosts[0].ip"}


def test_a_stale_write_is_a_conflict(api, namespace):
    old = api.ok("POST", widgets(namespace), widget("w", namespace))
    api.merge(f"{widgets(namespace)}/w", {"spec": {"size": 1}})
    status, answer = api.call("PUT", f"{widgets(namespace)}/w", old)
    assert (status, answer["reason"]) == (409, "Conflict")
    stale = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "spec": {}}
    status, answer = api.call("PATCH", f"{widgets(namespace)}/w", stale, headers=MERGE)
    assert (status, answer["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "{w}", b"{"),
        ("POST", "{w}", b"[]"),
        ("POST", "{w}", b""),
        ("POST", "{w}", {"kind": "Other", "metadata": {"name": "w"}}),
        ("POST", "{w}", {"apiVersion": "v1", "metadata": {"name": "w"}}),
        ("POST", "{w}", {"metadata": {"name": "w", "namespace": "elsewhere"}}),
        ("PUT", "{w}/w", {"metadata": {"name": "other", "resourceVersion": "1"}}),
        ("GET", "{w}?limit=some", None),
        ("GET", "{w}?labelSelector=a%20b%20c", None),
        ("GET", "{w}?watch=1&labelSelector=a%20b%20c", None),
        ("GET", "{w}?fieldSelector=nonsense", None),
    ],
)
def test_what_cannot_be_read_is_a_bad_request(api, namespace, method, path, body):
    status, answer = api.call(method, path.format(w=widgets(namespace)), body)
    assert status == 400, answer
    assert answer["reason"] == "BadRequest"


def test_methods_that_make_no_sense_are_refused(api, namespace):
    status, answer = api.call("PUT", widgets(namespace), {})
    assert (status, answer["reason"]) == (405, "MethodNotAllowed")


def test_a_body_that_is_too_large_is_refused(api, namespace):
    body = {"metadata": {"name": "c"}, "data": {"k": "x" * (4 * 1024 * 1024)}}
    status, answer = api.call("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge")


def test_a_form_that_cannot_be_made_is_refused(api, namespace):
    headers = {"Accept": "application/vnd.kubernetes.protobuf"}
    status, answer = api.call("GET", widgets(namespace), headers=headers)
    assert (status, answer["reason"]) == (406, "NotAcceptable")


def test_a_value_in_a_secret_is_not_in_any_error(api, namespace):
    body = {"metadata": {"name": "s"}, "stringData": {"bad key!": "hush-hush"}}
    path = f"/api/v1/namespaces/{namespace}/secrets"
    status, answer = api.call("POST", path, body)
    assert status == 422
    assert "hush-hush" not in json.dumps(answer)
    api.ok("POST", path, {"metadata": {"name": "s"}, "data": {"k": "aHVzaA=="}})
    patch = [{"op": "test", "path": "/data/k", "value": "x"}]
    headers = {"Content-Type": "application/json-patch+json"}
    status, answer = api.call("PATCH", f"{path}/s", patch, headers=headers)
    assert status == 422
    assert "aHVzaA" not in json.dumps(answer)


# --- writing -----------------------------------------------------------------------------------


def test_an_unknown_field_is_a_warning_by_default(api, namespace):
    with api.request("POST", widgets(namespace), widget("w", namespace, sise=1)) as answer:
        assert answer.status == 201
        assert answer.headers["Warning"] == '299 - "unknown field \\"spec.sise\\""'
    path = f"{widgets(namespace)}?fieldValidation=Strict"
    status, answer = api.call("POST", path, widget("x", namespace, sise=1))
    assert status == 400
    assert 'unknown field "spec.sise"' in answer["message"]
    with api.request(
        "POST", f"{widgets(namespace)}?fieldValidation=Ignore", widget("x", namespace, sise=1)
    ) as answer:
        assert "Warning" not in answer.headers


def test_a_dry_run_answers_as_if_and_writes_nothing(api, namespace):
    made = api.ok("POST", f"{widgets(namespace)}?dryRun=All", widget("w", namespace, size=1))
    assert made["spec"] == {"size": 1, "color": "grey"}
    assert api.call("GET", f"{widgets(namespace)}/w")[0] == 404
    path = f"{widgets(namespace)}?dryRun=Some"
    assert api.call("POST", path, widget("w", namespace))[0] == 422


def test_the_manager_is_named_by_the_client_program_unless_given(api, namespace):
    headers = {"User-Agent": "my-tool/1.2 (linux)"}
    made = api.ok("POST", widgets(namespace), widget("w", namespace), headers=headers)
    assert made["metadata"]["managedFields"][0]["manager"] == "my-tool"
    path = f"{widgets(namespace)}?fieldManager=given"
    made = api.ok("POST", path, widget("x", namespace), headers=headers)
    assert made["metadata"]["managedFields"][0]["manager"] == "given"


def test_defaults_belong_to_who_created_the_object(api, namespace):
    made = api.ok("POST", widgets(namespace), widget("w", namespace, size=1))
    assert "f:color" in made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]


def apply(api, path, body, manager, query="", content=None):
    headers = {"Content-Type": "application/apply-patch+yaml"}
    return api.call(
        "PATCH", f"{path}?fieldManager={manager}{query}", content or body, headers=headers
    )


def test_applying_yaml_creates_and_then_merges(api, namespace):
    path = f"{widgets(namespace)}/w"
    text = b"apiVersion: example.io/v1\nkind: Widget\nmetadata:\n  name: w\nspec:\n  size: 3\n"
    status, made = apply(api, path, None, "one", content=text)
    assert status == 201
    assert made["spec"] == {"size": 3, "color": "grey"}
    status, merged = apply(api, path, widget("w", namespace, image="i"), "two")
    assert status == 200
    assert merged["spec"] == {"size": 3, "color": "grey", "image": "i"}


def test_an_apply_conflict_names_field_and_manager(api, namespace):
    path = f"{widgets(namespace)}/w"
    apply(api, path, widget("w", namespace, size=3), "one")
    status, answer = apply(api, path, widget("w", namespace, size=4), "two")
    assert (status, answer["reason"]) == (409, "Conflict")
    assert answer["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.size"}
    ]
    status, answer = apply(api, path, widget("w", namespace, size=4), "two", "&force=true")
    assert (status, answer["spec"]["size"]) == (200, 4)


def test_an_apply_needs_a_manager_and_others_no_force(api, namespace):
    headers = {"Content-Type": "application/apply-patch+yaml"}
    path = f"{widgets(namespace)}/w"
    status, answer = api.call("PATCH", path, widget("w", namespace), headers=headers)
    assert status == 422
    assert answer["details"]["causes"][0]["field"] == "fieldManager"
    assert api.call("PATCH", f"{path}?force=true", {}, headers=MERGE)[0] == 422


def test_applying_the_status_leaves_everything_else(api, namespace):
    path = f"{widgets(namespace)}/w"
    apply(api, path, widget("w", namespace, size=3), "one")
    body = widget("w", namespace, size=9, status={"phase": "Ready"})
    status, answer = apply(api, f"{path}/status", body, "controller")
    assert status == 200
    assert answer["status"] == {"phase": "Ready"}
    assert answer["spec"]["size"] == 3
    entries = {e["manager"]: e for e in answer["metadata"]["managedFields"]}
    assert entries["controller"]["subresource"] == "status"


def test_removing_a_required_owner_leaves_no_trace_of_its_fields(api, namespace):
    path = f"{widgets(namespace)}/w"
    apply(api, path, widget("w", namespace, size=3, image="i"), "one")
    apply(api, path, widget("w", namespace, image="i"), "two")
    status, answer = apply(api, path, widget("w", namespace), "one")
    assert status == 200
    assert answer["spec"] == {"color": "grey", "image": "i"}


def test_a_put_creates_a_lease_that_is_not_there(api, namespace):
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/l"
    status, answer = api.call("PUT", path, {"metadata": {"name": "l"}, "spec": {}})
    assert status == 201, answer
    status, _ = api.call(
        "PUT", f"/api/v1/namespaces/{namespace}/secrets/s", {"metadata": {"name": "s"}}
    )
    assert status == 404


def test_a_pod_is_bound_once(api, namespace):
    path = f"/api/v1/namespaces/{namespace}/pods"
    api.ok("POST", path, pod("p", namespace))
    binding = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n"}}
    status, answer = api.call("POST", f"{path}/p/binding", binding)
    assert (status, answer["status"]) == (201, "Success")
    assert api.ok("GET", f"{path}/p")["spec"]["nodeName"] == "n"
    status, answer = api.call("POST", f"{path}/p/binding", binding)
    assert (status, answer["reason"]) == (409, "Conflict")


def test_deleting_says_whether_it_is_gone(api, namespace):
    path = f"{widgets(namespace)}/w"
    made = api.ok("POST", widgets(namespace), widget("w", namespace))
    answer = api.ok("DELETE", path)
    assert answer["status"] == "Success"
    assert answer["details"] == {
        "name": "w",
        "group": "example.io",
        "kind": "widgets",
        "uid": made["metadata"]["uid"],
    }
    held = widget("w", namespace)
    held["metadata"]["finalizers"] = ["example.io/hold"]
    api.ok("POST", widgets(namespace), held)
    answer = api.ok("DELETE", path)
    assert answer["kind"] == "Widget"
    assert answer["metadata"]["deletionTimestamp"]


def test_a_delete_can_be_conditional(api, namespace):
    api.ok("POST", widgets(namespace), widget("w", namespace))
    options = {"kind": "DeleteOptions", "preconditions": {"uid": "another"}}
    status, answer = api.call("DELETE", f"{widgets(namespace)}/w", options)
    assert (status, answer["reason"]) == (409, "Conflict")
    status, _ = api.call("DELETE", f"{widgets(namespace)}/w?propagationPolicy=Sideways")
    assert status == 422


def test_a_collection_can_be_deleted_by_selector(api, namespace):
    for name, tier in (("a", "x"), ("b", "y")):
        api.ok("POST", widgets(namespace), widget(name, namespace, labels={"t": tier}))
    answer = api.ok("DELETE", f"{widgets(namespace)}?labelSelector=t%3Dx")
    assert [item["metadata"]["name"] for item in answer["items"]] == ["a"]
    left = api.ok("GET", widgets(namespace))["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]


# --- reading -----------------------------------------------------------------------------------


def test_objects_in_the_form_asked_for(api, namespace):
    api.ok("POST", widgets(namespace), widget("w", namespace, size=1))
    path = f"{widgets(namespace)}/w"
    part = api.ok("GET", path, headers=PARTIAL)
    assert part["kind"] == "PartialObjectMetadata"
    assert part["metadata"]["name"] == "w"
    assert "spec" not in part
    parts = api.ok("GET", widgets(namespace), headers=PARTIALS)
    assert parts["kind"] == "PartialObjectMetadataList"
    assert [set(item) for item in parts["items"]] == [{"kind", "apiVersion", "metadata"}]
    table = api.ok("GET", f"{path}?includeObject=Object", headers=TABLE)
    assert table["rows"][0]["object"]["spec"]["size"] == 1
    table = api.ok("GET", f"{widgets(namespace)}?includeObject=None", headers=TABLE)
    assert "object" not in table["rows"][0]


def test_a_list_is_continued_where_it_ended(api, namespace):
    for number in range(5):
        api.ok("POST", widgets(namespace), widget(f"w{number}", namespace))
    first = api.ok("GET", f"{widgets(namespace)}?limit=2")
    assert first["kind"] == "WidgetList"
    assert first["metadata"]["remainingItemCount"] == 3
    token = first["metadata"]["continue"]
    rest = api.ok("GET", f"{widgets(namespace)}?limit=10&continue={token}")
    names = [item["metadata"]["name"] for item in first["items"] + rest["items"]]
    assert names == [f"w{number}" for number in range(5)]
    table = api.ok("GET", f"{widgets(namespace)}?limit=2", headers=TABLE)
    assert len(table["rows"]) == 2
    assert table["metadata"]["continue"]


# --- watching ----------------------------------------------------------------------------------


def lines(answer):
    for line in answer:
        yield json.loads(line)


def test_a_watch_tells_what_exists_and_what_comes(api, namespace):
    api.ok("POST", widgets(namespace), widget("a", namespace))
    with api.request("GET", f"{widgets(namespace)}?watch=true&timeoutSeconds=30") as answer:
        events = lines(answer)
        assert next(events)["type"] == "ADDED"
        api.merge(f"{widgets(namespace)}/a", {"spec": {"size": 2}})
        event = next(events)
        assert (event["type"], event["object"]["spec"]["size"]) == ("MODIFIED", 2)
        api.ok("DELETE", f"{widgets(namespace)}/a")
        assert next(events)["type"] == "DELETED"


def test_a_watch_from_a_version_tells_only_what_came_after(api, namespace):
    api.ok("POST", widgets(namespace), widget("a", namespace))
    version = api.ok("GET", widgets(namespace))["metadata"]["resourceVersion"]
    api.ok("POST", widgets(namespace), widget("b", namespace))
    path = f"{widgets(namespace)}?watch=1&resourceVersion={version}"
    with api.request("GET", path) as answer:
        assert next(lines(answer))["object"]["metadata"]["name"] == "b"


def test_a_watch_of_selected_objects_sees_them_come_and_go(api, namespace):
    path = f"{widgets(namespace)}?watch=1&labelSelector=t%3Dx"
    api.ok("POST", widgets(namespace), widget("a", namespace, labels={"t": "x"}))
    with api.request("GET", path) as answer:
        events = lines(answer)
        assert next(events)["type"] == "ADDED"
        api.merge(f"{widgets(namespace)}/a", {"metadata": {"labels": {"t": "y"}}})
        assert next(events)["type"] == "DELETED"
        api.merge(f"{widgets(namespace)}/a", {"metadata": {"labels": {"t": "x"}}})
        assert next(events)["type"] == "ADDED"


def test_a_watch_ends_after_its_timeout(api, namespace):
    start = time.monotonic()
    with api.request("GET", f"{widgets(namespace)}?watch=1&timeoutSeconds=1") as answer:
        assert list(lines(answer)) == []
    assert 0.9 < time.monotonic() - start < 20


def test_a_streamed_list_ends_with_a_marked_bookmark(api, namespace):
    api.ok("POST", widgets(namespace), widget("a", namespace))
    query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
    path = f"{widgets(namespace)}?{query}&resourceVersionMatch=NotOlderThan"
    with api.request("GET", path) as answer:
        events = lines(answer)
        assert next(events)["type"] == "ADDED"
        mark = next(events)
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_in_another_form(api, namespace):
    api.ok("POST", widgets(namespace), widget("a", namespace, size=4))
    with api.request("GET", f"{widgets(namespace)}?watch=1", headers=TABLE) as answer:
        event = next(lines(answer))
        assert event["object"]["kind"] == "Table"
        assert event["object"]["rows"][0]["cells"][0] == "a"
    with api.request("GET", f"{widgets(namespace)}?watch=1", headers=PARTIAL) as answer:
        assert next(lines(answer))["object"]["kind"] == "PartialObjectMetadata"


def test_a_watch_from_too_long_ago_says_that_it_is_gone(api, namespace):
    version = api.ok("GET", widgets(namespace))["metadata"]["resourceVersion"]
    api.ok("POST", widgets(namespace), widget("a", namespace))
    api.store.compact()
    path = f"{widgets(namespace)}?watch=1&resourceVersion={version}"
    with api.request("GET", path) as answer:
        event = next(lines(answer))
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 410


def test_many_watches_do_not_hinder_requests(api, namespace):
    context = ssl.create_default_context(cafile=str(api.server.ca_path))
    headers = {"Authorization": f"Bearer {api.server.token}"}
    connections = []
    for _ in range(120):
        connection = HTTPSConnection("127.0.0.1", api.server.port, context=context, timeout=30)
        connection.request("GET", f"{widgets(namespace)}?watch=1", headers=headers)
        connections.append((connection, connection.getresponse()))
    api.ok("POST", widgets(namespace), widget("a", namespace))
    assert api.ok("GET", f"{widgets(namespace)}/a")
    for connection, answer in connections:
        assert json.loads(answer.readline())["object"]["metadata"]["name"] == "a"
        connection.close()


def test_events_are_one_storage_with_two_views(api, namespace):
    path = f"/api/v1/namespaces/{namespace}/events"
    event = {
        "metadata": {"name": "e", "namespace": namespace},
        "involvedObject": {"kind": "Job", "namespace": namespace, "name": "j"},
        "reason": "Why",
        "message": "because",
        "type": "Normal",
    }
    api.ok("POST", path, event)
    new = api.ok("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/e")
    assert (new["regarding"]["name"], new["note"]) == ("j", "because")
    found = api.ok("GET", f"{path}?fieldSelector=involvedObject.name%3Dj")["items"]
    assert [item["metadata"]["name"] for item in found] == ["e"]


def test_a_jobs_defaults_are_those_of_kubernetes(api, namespace):
    made = api.ok("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", job("j", namespace))
    assert made["spec"]["backoffLimit"] == 6
    assert made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 30


# --- discovery ---------------------------------------------------------------------------------


def test_discovery_in_the_old_form(api):
    assert api.ok("GET", "/api")["versions"] == ["v1"]
    groups = {group["name"]: group for group in api.ok("GET", "/apis")["groups"]}
    assert groups["example.io"]["preferredVersion"]["groupVersion"] == "example.io/v1"
    assert "" not in groups
    resources = {r["name"]: r for r in api.ok("GET", "/apis/example.io/v1")["resources"]}
    assert resources["widgets"]["shortNames"] == ["wd"]
    assert resources["widgets/status"]["verbs"] == ["get", "patch", "update"]
    core = {r["name"]: r for r in api.ok("GET", "/api/v1")["resources"]}
    assert core["pods/log"]["verbs"] == ["get"]
    assert core["serviceaccounts/token"]["kind"] == "TokenRequest"


def test_the_root_lists_where_to_look(api):
    paths = api.ok("GET", "/")["paths"]
    assert {"/api/v1", "/apis/example.io/v1", "/version", "/healthz"} <= set(paths)


def test_discovery_all_at_once(api):
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    found = api.ok("GET", "/apis", headers={"Accept": accept})
    assert found["apiVersion"] == "apidiscovery.k8s.io/v2"
    group = next(g for g in found["items"] if g["metadata"]["name"] == "example.io")
    (resource,) = group["versions"][0]["resources"]
    assert resource["resource"] == "widgets"
    assert resource["subresources"][0]["subresource"] == "status"


def test_schemas_are_published_with_all_they_refer_to(api):
    index = api.ok("GET", "/openapi/v3")["paths"]
    assert {"api/v1", "apis/batch/v1", "apis/example.io/v1"} <= set(index)
    for link in index.values():
        document = api.ok("GET", link["serverRelativeURL"])
        text = json.dumps(document)
        names = document["components"]["schemas"]
        prefix = "#/components/schemas/"
        for part in text.split('"$ref": "')[1:]:
            name = part.partition('"')[0]
            assert not name.startswith(prefix) or name.removeprefix(prefix) in names
    batch = api.ok("GET", index["apis/batch/v1"]["serverRelativeURL"])
    item = batch["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]
    assert "fieldValidation" in [p["name"] for p in item["patch"]["parameters"]]
