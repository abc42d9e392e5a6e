"""Lists: order, pages, consistency."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from captfctl.cluster.errors import ApiError, BadRequest, Gone
from captfctl.model.core import Namespace
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import NAMESPACES
from tests.contract.widgets import make, names

COUNT = 11


@pytest.fixture(scope="module")
def shelf(door, widget):
    """A namespace with `w00` … `w10`, of which the even ones are labelled."""
    meta = ObjectMeta(generate_name="contract-shelf-")
    name = door.create(NAMESPACES, Namespace(metadata=meta)).metadata.name
    for index in range(COUNT):
        labels = {} if index % 2 else {"even": "yes"}
        door.create(widget, make(f"w{index:02}", labels=labels), name)
    yield name
    door.delete(NAMESPACES, name)


ALL = [f"w{index:02}" for index in range(COUNT)]


def walk(door, widget, shelf, limit, **selectors):
    pages = [door.list(widget, shelf, limit=limit, **selectors)]
    while pages[-1].continue_token:
        token = pages[-1].continue_token
        pages.append(door.list(widget, shelf, limit=limit, continue_token=token, **selectors))
    return pages


def test_an_empty_list_has_a_version(door, namespace, widget):
    page = door.list(widget, namespace)
    assert page.items == []
    assert int(page.resource_version) > 0
    assert page.continue_token == ""


def test_objects_come_in_the_order_of_their_names(door, shelf, widget):
    assert names(door.list(widget, shelf).items) == ALL


def test_a_lists_version_covers_what_it_holds(door, namespace, widget):
    made = door.create(widget, make("a"), namespace)
    page = door.list(widget, namespace)
    assert int(page.resource_version) >= int(made["metadata"]["resourceVersion"])


def test_items_say_what_they_are(door, shelf, widget):
    item = door.list(widget, shelf, limit=1).items[0]
    assert (item["kind"], item["apiVersion"]) == ("Widget", widget.api_version)


def test_all_namespaces_at_once(door, namespace, shelf, widget):
    door.create(widget, make("a"), namespace)
    found = door.list(widget).items
    places = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found]
    assert (namespace, "a") in places
    assert [name for place, name in places if place == shelf] == ALL


def test_cluster_scoped_objects_have_no_namespace(door, definitions):
    resource = definitions.install(namespaced=False)
    made = door.create(resource, make("a"))
    assert "namespace" not in made["metadata"]
    assert door.get(resource, "a") == made
    assert names(door.list(resource).items) == ["a"]
    door.delete(resource, "a")


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(limit=st.integers(min_value=1, max_value=COUNT + 2), labelled=st.booleans())
def test_pages_put_together_are_the_list(door, shelf, widget, limit, labelled):
    selectors = {"labels": "even"} if labelled else {}
    wanted = ALL[::2] if labelled else ALL
    pages = walk(door, widget, shelf, limit, **selectors)
    assert [name for page in pages for name in names(page.items)] == wanted
    assert all(0 < len(page.items) <= limit for page in pages)
    assert len({page.resource_version for page in pages}) == 1


def test_a_page_tells_how_many_are_left(door, shelf, widget):
    pages = walk(door, widget, shelf, 4)
    assert [page.remaining for page in pages] == [7, 3, None]


def test_a_full_last_page_is_the_end(door, shelf, widget):
    page = door.list(widget, shelf, limit=COUNT)
    assert page.continue_token == ""
    assert names(page.items) == ALL


def test_later_pages_show_the_time_of_the_first(door, namespace, widget):
    for name in "abcd":
        door.create(widget, make(name, {"x": 1}), namespace)
    first = door.list(widget, namespace, limit=2)
    door.delete(widget, "c", namespace)
    door.patch(widget, "d", namespace, {"spec": {"x": 2}})
    door.create(widget, make("e"), namespace)
    rest = door.list(widget, namespace, limit=5, continue_token=first.continue_token)
    assert names(rest.items) == ["c", "d"]
    assert rest.items[1]["spec"] == {"x": 1}
    assert rest.resource_version == first.resource_version
    assert names(door.list(widget, namespace).items) == ["a", "b", "d", "e"]


def test_a_page_after_what_the_last_one_ended_with_is_deleted(door, namespace, widget):
    for name in "abc":
        door.create(widget, make(name), namespace)
    first = door.list(widget, namespace, limit=2)
    door.delete(widget, "b", namespace)
    rest = door.list(widget, namespace, continue_token=first.continue_token, limit=2)
    assert names(rest.items) == ["c"]


def test_a_token_from_before_a_compaction_is_gone(door, namespace, widget, compact):
    for name in "abc":
        door.create(widget, make(name), namespace)
    first = door.list(widget, namespace, limit=1)
    door.delete(widget, "c", namespace)
    compact()
    with pytest.raises(Gone):
        door.list(widget, namespace, limit=1, continue_token=first.continue_token)


@pytest.mark.parametrize("token", ["nonsense", "e30", "////", "eyJ2IjoibWV0YSJ9"])
def test_what_is_no_token_is_refused(door, namespace, widget, token):
    with pytest.raises(BadRequest):
        door.list(widget, namespace, limit=1, continue_token=token)


def test_a_list_not_older_than_a_write_holds_it(door, namespace, widget):
    made = door.create(widget, make("a"), namespace)
    version = made["metadata"]["resourceVersion"]
    page = door.list(widget, namespace, resource_version=version)
    assert names(page.items) == ["a"]
    assert int(page.resource_version) >= int(version)


def test_any_version_will_do(door, shelf, widget, eventually):
    def complete() -> bool:
        return names(door.list(widget, shelf, resource_version="0").items) == ALL

    eventually(complete)


def test_a_version_is_a_number(door, shelf, widget):
    with pytest.raises(ApiError):
        door.list(widget, shelf, resource_version="yesterday")
