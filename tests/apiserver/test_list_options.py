"""Versions and options of lists and watches: which go together, and what lies in the future."""

import json

import pytest

from tests.apiserver.conftest import widget
from tests.apiserver.in_process import InProcess

MAPS = "/api/v1/namespaces/default/configmaps"
FUTURE = "99999999"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = InProcess(tmp_path_factory.mktemp("api"))
    yield made
    made.close()


def cause(answer):
    (found,) = answer["details"]["causes"]
    return found["field"], found["reason"]


@pytest.mark.parametrize(
    "path",
    [
        MAPS,
        "/api/v1/configmaps",
        f"{MAPS}/absent",
        "/apis/batch/v1/jobs",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ],
)
@pytest.mark.parametrize("more", ["", "&limit=1"])
def test_a_version_of_the_future_is_not_answered_with_older_data(server, path, more):
    answer = server("GET", f"{path}?resourceVersion={FUTURE}{more}")
    assert answer.status == 504
    told = answer.json
    assert told["reason"] == "Timeout"
    assert "Too large resource version" in told["message"]
    assert told["details"]["retryAfterSeconds"] == 1
    assert told["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("match", ["NotOlderThan", "Exact"])
def test_however_it_is_to_be_matched(server, match):
    query = f"resourceVersion={FUTURE}&resourceVersionMatch={match}"
    assert server("GET", f"{MAPS}?{query}").status == 504


def test_versions_that_were_reached_are_answered(server):
    version = server("GET", MAPS).json["metadata"]["resourceVersion"]
    for query in ("", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact"):
        assert server("GET", f"{MAPS}?resourceVersion={version}{query}").status == 200
    assert server("GET", f"{MAPS}?resourceVersion=0").status == 200


@pytest.mark.parametrize(
    ("query", "field", "reason"),
    [
        ("sendInitialEvents=true", "sendInitialEvents", "FieldValueForbidden"),
        ("resourceVersionMatch=Exact", "resourceVersionMatch", "FieldValueForbidden"),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch",
            "FieldValueForbidden",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=1&continue=x",
            "resourceVersionMatch",
            "FieldValueForbidden",
        ),
        (
            "resourceVersionMatch=Some&resourceVersion=1",
            "resourceVersionMatch",
            "FieldValueNotSupported",
        ),
        ("watch=1&sendInitialEvents=true", "resourceVersionMatch", "FieldValueForbidden"),
        ("watch=1&sendInitialEvents=false", "resourceVersionMatch", "FieldValueForbidden"),
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch",
            "FieldValueForbidden",
        ),
        ("watch=1&continue=x", "resourceVersionMatch", "FieldValueForbidden"),
        ("watch=true&sendInitialEvents=1", "resourceVersionMatch", "FieldValueForbidden"),
    ],
)
def test_options_that_do_not_go_together_are_refused(server, query, field, reason):
    answer = server("GET", f"{MAPS}?{query}")
    assert answer.status == 422, answer
    assert cause(answer.json) == (field, reason)
    assert answer.json["details"]["kind"] == "ListOptions"


def lines(api, path):
    with api.request("GET", path) as answer:
        return [json.loads(line) for line in answer]


WIDGETS = "/apis/example.io/v1/namespaces/{}/widgets"


def test_a_watch_list_from_the_future_ends_with_an_error(api, namespace):
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    path = f"{WIDGETS.format(namespace)}?watch=1&resourceVersion={FUTURE}&{query}"
    (event,) = lines(api, path)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 504)


def test_a_watch_from_the_future_tells_nothing_that_comes_before_it(api, namespace):
    path = WIDGETS.format(namespace)
    latest = int(api.ok("GET", path)["metadata"]["resourceVersion"])
    query = f"watch=1&resourceVersion={latest + 2}&timeoutSeconds=30"
    with api.request("GET", f"{path}?{query}") as stream:
        made = [api.ok("POST", path, widget(f"w{n}", namespace)) for n in range(4)]
        event = json.loads(stream.readline())
    versions = [int(one["metadata"]["resourceVersion"]) for one in made]
    expected = next(n for n, version in enumerate(versions) if version > latest + 2)
    assert event["object"]["metadata"]["name"] == f"w{expected}"


def test_the_end_of_what_exists_is_told_to_those_who_want_bookmarks(api, namespace):
    path = WIDGETS.format(namespace)
    api.ok("POST", path, widget("w", namespace))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    assert [event["type"] for event in lines(api, f"{path}?{query}")] == ["ADDED"]
    events = lines(api, f"{path}?{query}&allowWatchBookmarks=true")
    assert [event["type"] for event in events[:2]] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
