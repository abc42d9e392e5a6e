"""Three-way merges of described objects."""

from hypothesis import given
from hypothesis import strategies as st

from captfctl.cluster.apply import three_way_patch
from captfctl.embedded.store import merge_patch

leaves = st.booleans() | st.integers() | st.text(max_size=4) | st.lists(st.integers(), max_size=2)
keys = st.sampled_from(["a", "b", "c"])
documents = st.dictionaries(
    keys,
    st.recursive(leaves, lambda inner: st.dictionaries(keys, inner, max_size=3), max_leaves=6),
    max_size=3,
)


def contains(whole, part):
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    return whole == part


def test_a_field_the_description_dropped_is_removed_and_anothers_field_stays():
    original = {"spec": {"mine": 1, "dropped": 2}}
    wanted = {"spec": {"mine": 3}}
    current = {"spec": {"mine": 1, "dropped": 2, "theirs": 4}}

    assert three_way_patch(original, wanted, current) == {"spec": {"mine": 3, "dropped": None}}


def test_nothing_to_change_makes_no_patch():
    wanted = {"spec": {"mine": 1}}

    assert three_way_patch(wanted, wanted, {"spec": {"mine": 1, "theirs": 2}}) == {}


@given(documents, documents, documents)
def test_after_the_patch_everything_wanted_is_there(original, wanted, current):
    patch = three_way_patch(original, wanted, current)

    assert contains(merge_patch(current, patch), wanted)


@given(documents, documents, documents)
def test_a_second_apply_finds_nothing_to_do(original, wanted, current):
    after = merge_patch(current, three_way_patch(original, wanted, current))

    assert three_way_patch(wanted, wanted, after) == {}
