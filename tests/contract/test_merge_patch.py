"""A patch is a JSON merge patch (RFC 7386), whatever the documents are."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.widgets import make

KEYS = st.sampled_from(["a", "b", "c", "d-e", "ü"])
LEAVES = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.text("xyz ß\u2603", max_size=5))
VALUES = st.recursive(
    LEAVES,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(KEYS, below, max_size=3)),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
PATCHES = st.recursive(
    st.one_of(st.none(), LEAVES, st.lists(LEAVES, max_size=3)),
    lambda below: st.dictionaries(KEYS, below, max_size=4),
    max_leaves=8,
).filter(lambda patch: isinstance(patch, dict))


def expected(target, patch):
    """The RFC's own algorithm."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = expected(result.get(key), value)
    return result


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(document=DOCUMENTS, patch=PATCHES)
def test_patches_merge_by_the_book(door, namespace, widget, document, patch):
    made = door.create(widget, {"metadata": {"generateName": "m-"}, "spec": document}, namespace)
    name = made["metadata"]["name"]
    patched = door.patch(widget, name, namespace, {"spec": patch})
    assert patched["spec"] == expected(document, patch)
    assert door.get(widget, name, namespace) == patched


def test_lists_are_replaced_whole(door, namespace, widget):
    door.create(widget, make("a", {"l": [1, {"x": 1}]}), namespace)
    assert door.patch(widget, "a", namespace, {"spec": {"l": [2]}})["spec"] == {"l": [2]}
