"""The plan fingerprint and the plan's summary (runner.md: Reading a plan)."""

import json
import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import fingerprint, jsontext, plan, wire
from tests.runner.harness import PLAN_KEY

VECTORS = {
    "F1": ('{"resource_changes":[]}', [], wire.EMPTY_PLAN),
    "F2": (
        '{"resource_changes":[{"address":"a.b","change":{"actions":["delete"],"before":{"n":1}}}]}',
        ["{}"],
        "p2:0ca9c209180dfe300d593ad23db98d4449fdf5f4461d58ee151811bb4fb156e3",
    ),
    "F3": (
        '{"resource_changes":[{"address":"a.b","change":{"actions":["create"],'
        '"after":{"z":"<x>","n":1.0},"after_unknown":{"id":true,"tags":{}},'
        '"after_sensitive":{"z":true}}}]}',
        [
            '{"after":{"n":1.0,"z":"\\u003cx\\u003e"},"after_unknown":{"id":true},'
            '"after_sensitive":{"z":true}}'
        ],
        "p2:e04d6e0ec4fb45035fe911353d362922fff80f586dc29bce0a2dfb00b519965a",
    ),
    "F4": (
        '{"resource_changes":[{"address":"a.b","change":{"actions":["update"],'
        '"before":{"size":1,"keep":"k","arn":"old"},"after":{"size":2,"keep":"k"},'
        '"after_unknown":{"arn":true}}}]}',
        [
            '{"paths":[{"path":["arn"],"before":null,"after":null,"unknown":true},'
            '{"path":["size"],"before":1,"after":2}]}'
        ],
        "p2:9ab175f297475c7cc629e10622498c7f9514bdde0b6546e49e9af8dc96a83ac3",
    ),
    "F5": (
        '{"resource_changes":[{"address":"a.b","change":{"actions":["update"],'
        '"before":{"l":["x",null]},"after":{"l":["x"]}}}]}',
        ['{"paths":[{"path":["l",1],"before":null,"after":null,"after_absent":true}]}'],
        "p2:9c2e681ebd3e27e11b03b6c6e1e64f6a84d347fcf1b693d0b953c3709253ec30",
    ),
    "F6": (
        '{"resource_changes":[{"address":"a.new","previous_address":"a.old","change":'
        '{"actions":["no-op"],"before":{"n":1},"after":{"n":1},"importing":{"id":"i-1"}}}]}',
        ['{"importing":{"id":"i-1"},"previous_address":"a.old"}'],
        "p2:f4c7aad9d32a4a0b39a0cf5337a1201f71ed29e84ec3ea60ddbb19f8f86d9282",
    ),
    "F7": (
        '{"output_changes":{"endpoint":{"actions":["update"],"before":"a","after":"b",'
        '"after_unknown":false,"before_sensitive":true,"after_sensitive":true}}}',
        [
            '{"paths":[{"path":[],"before":"a","after":"b","before_sensitive":true,'
            '"after_sensitive":true}]}'
        ],
        "p2:7a0bf521a1b43505ce4d27828caeed4b9017e525d0c93bd08c6a349299cb3114",
    ),
    "F8": (
        '{"resource_changes":[{"address":"a.b","change":{"actions":["delete","create"],'
        '"before":{"n":1},"after":{"n":1}}},{"address":"a.c","change":{"actions":'
        '["create","delete"],"before":{"n":1},"after":{"n":2}}}],'
        '"output_changes":{"o":{"actions":["create"],"after":{"k":[1,2]}}}}',
        [
            "{}",
            '{"paths":[{"path":["n"],"before":1,"after":2}]}',
            '{"after":{"k":[1,2]}}',
        ],
        "p2:0dc02d1908ff0626ee71319b6bc4ee57c2912dccc1f454d245b399a96c2f24f2",
    ),
}


def _read(document: str, key: bytes = PLAN_KEY) -> plan.Reading:
    return plan.read([document.encode()], key)


def _changes(document: str) -> list[fingerprint.Change]:
    value = jsontext.decode_at(document, 0)
    resources = value.get("resource_changes", [])
    found = [
        fingerprint.Change.of(entry["change"], entry.get("previous_address", ""))
        for entry in resources
    ]
    outputs = value.get("output_changes", {})
    return found + [fingerprint.Change.of(entry, "") for entry in outputs.values()]


@pytest.mark.parametrize("name", VECTORS)
def test_the_vector_has_its_effect_and_its_hash(name):
    document, effects, expected = VECTORS[name]
    assert [fingerprint.effect(change) for change in _changes(document)] == effects
    assert _read(document).summary.hash == expected


def _update(before: object, after: object, **marks: object) -> str:
    """The hash of one updated resource; values may be given as JSON text."""
    change = {"actions": ["update"], "before": before, "after": after, **marks}
    return _hash({"resource_changes": [{"address": "a.b", "change": change}]})


class _Raw(float):
    """A number literal that json.dumps writes exactly as given."""

    def __new__(cls, text: str):
        value = super().__new__(cls, 0.0)
        value.text = text
        return value

    def __repr__(self):
        return self.text


def _hash(document: object) -> str:
    return _read(_dumps(document)).summary.hash


def _dumps(value: object) -> str:
    if isinstance(value, _Raw):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{_dumps(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dumps, value)) + "]"
    return json.dumps(value)


def test_the_order_of_changes_and_keys_does_not_matter_the_key_does():
    changes = json.loads(VECTORS["F8"][0])["resource_changes"]
    outputs = {"o": {"actions": ["create"], "after": 1}, "p": {"actions": ["delete"]}}
    one = {"resource_changes": changes, "output_changes": outputs}
    other = {
        "output_changes": dict(reversed(outputs.items())),
        "resource_changes": [
            {"change": dict(reversed(entry["change"].items())), "address": entry["address"]}
            for entry in reversed(changes)
        ],
    }
    assert _hash(one) == _hash(other)
    assert _read(json.dumps(one), b"k" * 32).summary.hash != _hash(one)


def test_what_stays_the_same_is_not_bound():
    assert _update({"a": 1, "s": 1}, {"a": 2, "s": 1}) == _update(
        {"a": 1, "s": 9}, {"a": 2, "s": 9}
    )
    assert _update({"a": 1}, {}, after_unknown={"a": True}) == _update(
        {"a": 2}, {}, after_unknown={"a": True}
    )


def test_spellings_of_no_mark_are_the_same():
    plain = _update({"a": 1}, {"a": 2})
    for marks in ({}, False, {"a": False}, {"b": {}}, [False], None):
        assert _update({"a": 1}, {"a": 2}, after_unknown=marks, before_sensitive=marks) == plain


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (({"a": 1}, {"a": 2}), ({"a": 1}, {"a": 3})),
        (({"a": 1}, {"a": 2}), ({"a": 0}, {"a": 2})),
        (({"l": [1, None]}, {"l": [1]}), ({"l": [1]}, {"l": [1]})),
        (({"x": 1}, {"x": 2, "n": None}), ({"x": 1}, {"x": 2})),
        (({"x": None}, {}), ({}, {"x": None})),
        (({"v": {"0": 1}}, {"v": {"0": 2}}), ({"v": [1]}, {"v": [2]})),
        (({"a/b": 1}, {"a/b": 2}), ({"a": {"b": 1}}, {"a": {"b": 2}})),
        (({"n": 1}, {"n": "1"}), ({"n": 1}, {"n": 1})),
        (
            ({"n": 0}, {"n": _Raw("12345678901234567890")}),
            ({"n": 0}, {"n": _Raw("12345678901234567891")}),
        ),
        (({"n": 0}, {"n": _Raw("1.0")}), ({"n": 0}, {"n": _Raw("1")})),
        (({"n": True}, {"n": 1}), ({"n": False}, {"n": 1})),
    ],
)
def test_every_difference_in_the_values_is_bound(one, other):
    assert _update(*one) != _update(*other)


def test_new_unknowns_and_changed_sensitivity_are_bound():
    plain = _update({"a": 1}, {"a": 1})
    assert _update({"a": 1}, {}, after_unknown={"a": True}) != plain
    assert _update({"a": 1}, {"a": 1}, after_sensitive={"a": True}) != plain
    both = _update({"a": 1}, {"a": 1}, before_sensitive={"a": True}, after_sensitive={"a": True})
    assert both == plain


def _resource(
    actions: list[str], address: str = "a.b", previous: str = "", **change: object
) -> str:
    entry = {"address": address, "change": {"actions": actions, **change}}
    if previous:
        entry["previous_address"] = previous
    return _hash({"resource_changes": [entry]})


def test_a_create_binds_what_will_be_and_a_delete_nothing():
    assert _resource(["create"], after={"a": 1}) != _resource(["create"], after={"a": 2})
    for actions in (["delete"], ["forget"]):
        assert _resource(actions, before={"a": 1}) == _resource(actions, before={"a": 2})


def test_imports_and_moves_bind_where_from():
    assert _resource(["no-op"], importing={"id": "1"}) != _resource(
        ["no-op"], importing={"id": "2"}
    )
    assert _resource(["no-op"], previous="a.x") != _resource(["no-op"], previous="a.y")
    assert _resource(["no-op"], importing=None) == wire.EMPTY_PLAN


def test_the_two_orders_of_a_replacement_differ():
    assert _resource(["create", "delete"]) != _resource(["delete", "create"])


def test_duplicate_members_count_as_their_last():
    twice = '{"resource_changes":[{"address":"x"}],"resource_changes":[]}'
    assert _read(twice).summary.hash == wire.EMPTY_PLAN


def test_text_that_is_no_unicode_becomes_the_replacement_character():
    one = '{"resource_changes":[{"address":"a","change":{"actions":["create"],"after":"%s"}}]}'
    hashes = {
        plan.read([document], PLAN_KEY).summary.hash
        for document in (
            (one % "\ufffd").encode(),
            (one % "\\ud800").encode(),
            one.encode() % b"\xff",
        )
    }
    assert len(hashes) == 1


def test_wide_characters_and_their_escapes_are_the_same():
    one = '{"output_changes":{"o":{"actions":["create"],"after":"%s"}}}'
    raw, escaped = one % "é 語 😀 \u2028", one % "\\u00e9 \\u8a9e \\ud83d\\ude00 \\u2028"
    assert _read(raw).summary.hash == _read(escaped).summary.hash


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_json_number_is_refused(number):
    with pytest.raises(jsontext.JsonError):
        _read(f'{{"output_changes":{{"o":{{"actions":["create"],"after":{number}}}}}}}')


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_canonical_text_says_the_same_and_is_stable(value):
    text = jsontext.canonical(jsontext.decode_at(json.dumps(value), 0))
    again = jsontext.canonical(jsontext.decode_at(text, 0))
    assert again == text
    assert not set("<>&\u2028\u2029") & set(text)
    clean = json.loads(json.dumps(value), parse_int=str, parse_float=str)
    if "\ufffd" not in text:
        assert json.loads(text, parse_int=str, parse_float=str) == clean


@given(JSON, st.randoms())
def test_the_order_of_members_never_shows(value, rng: random.Random):
    def shuffled(part):
        if isinstance(part, dict):
            items = list(part.items())
            rng.shuffle(items)
            return {key: shuffled(item) for key, item in items}
        return [shuffled(item) for item in part] if isinstance(part, list) else part

    one, other = (
        jsontext.canonical(jsontext.decode_at(json.dumps(item), 0))
        for item in (value, shuffled(value))
    )
    assert one == other


def test_an_update_that_imports_and_moves_is_one_line():
    entry = {
        "address": "x",
        "previous_address": "y",
        "change": {"actions": ["update"], "importing": {"id": "1"}, "before": 1, "after": 2},
    }
    found = _read(json.dumps({"resource_changes": [entry]})).summary
    assert found.resources == ("x (update, import, move)",)
    assert (found.update, found.imported, found.move) == (1, 1, 1)
    assert found.counts.endswith(", 1 to import, 1 to move")


def test_fifty_resources_are_listed_sorted_and_the_rest_is_marked():
    entries = [{"address": f"r.{n:02}", "change": {"actions": ["create"]}} for n in range(55)]
    found = _read(json.dumps({"resource_changes": entries[::-1]})).summary
    assert found.create == 55
    assert found.resources == tuple(f"r.{n:02} (create)" for n in range(50))
    assert found.truncated


def test_labels_cover_every_action():
    actions = [["read"], ["forget"], ["delete", "create"], ["create", "forget"], ["no-op"], []]
    entries = [{"address": f"r.{n}", "change": {"actions": a}} for n, a in enumerate(actions)]
    found = _read(json.dumps({"resource_changes": entries})).summary
    assert found.resources == (
        "r.0 (read)",
        "r.1 (forget)",
        "r.2 (replace)",
        "r.3 (create,forget)",
    )
    assert found.forget == 2


def test_null_everywhere_reads_as_empty():
    document = (
        '{"resource_changes":[{"address":null,"change":null},{"change":{"actions":null}}],'
        '"output_changes":null,"prior_state":{"values":{"root_module":{"resources":null}}}}'
    )
    assert _read(document).summary == wire.Plan(wire.EMPTY_PLAN)
    assert _read("{}").summary == wire.Plan(wire.EMPTY_PLAN)


def test_reading_a_large_plan_needs_little_more_memory_than_its_text():
    import tracemalloc

    rng = random.Random(7)
    values = {f"attribute_{n}": "v" * rng.randrange(10, 40) for n in range(30)}
    entries = [
        {
            "address": f"module.role.thing.this[{n}]",
            "change": {
                "actions": ["update"],
                "before": {**values, "n": n},
                "after": {**values, "n": n + 1, "name": "größe 😀"},
                "after_unknown": {},
            },
        }
        for n in range(3000)
    ]
    resources = [{"mode": "managed", "address": f"t.r[{n}]", "values": values} for n in range(3000)]
    document = json.dumps(
        {
            "resource_changes": entries,
            "prior_state": {"values": {"root_module": {"resources": resources}}},
        },
        ensure_ascii=False,
    ).encode()
    del entries, resources
    size = len(document)
    tracemalloc.start()
    try:
        pieces = deque(document[start : start + 65536] for start in range(0, size, 65536))
        found = plan.read((pieces.popleft() for _ in range(len(pieces))), PLAN_KEY)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.summary.update == 3000
    assert peak < 3 * size
