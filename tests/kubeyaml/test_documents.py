"""YAML and JSON texts: values as kubectl has them, lines, and everything that is refused."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.kubeyaml import MAX_DEPTH, MAX_EXPANDED, documents, to_yaml


def parse(text):
    """The one value of a text without problems."""
    problems = []
    (parsed,) = documents(text, problems)
    assert problems == []
    return parsed.value


def problems_of(text):
    problems = []
    list(documents(text, problems))
    return [(problem.line, problem.path, problem.message) for problem in problems]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("text", "text"),
        ("true", True),
        ("False", False),
        ("yes", True),
        ("no", False),
        ("on", True),
        ("y", True),
        ("1e999", "1e999"),
        ("1e20", 1e20),
        ("0b11", 3),
        ("012", 10),
        ("~", None),
        ("null", None),
        ("", None),
        ("12", 12),
        ("-7", -7),
        ("+1", 1),
        ("1_000", 1000),
        ("0644", 0o644),
        ("0o17", 15),
        ("0x1F", 31),
        ("08", 8),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        ("10m", "10m"),
        ("12:30:45", "12:30:45"),
        ("2026-09-25", "2026-09-25"),
        ("2026-09-25T12:00:00Z", "2026-09-25T12:00:00Z"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!int 12", 12),
        ("[1, two]", [1, "two"]),
        ("{x: {z: z}}", {"x": {"z": "z"}}),
        ("|\n  one\n  two\n", "one\ntwo\n"),
    ],
)
def test_values_are_what_is_written(written, value):
    if written == "-":
        written = "'-'"
    parsed = parse(f"a: {written}")["a"]
    assert parsed == value
    assert type(parsed) is type(value)


def test_lines_are_those_of_the_keys():
    problems = []
    text = "a: 1\nb:\n  c:\n  - x\n  - w: |\n      long\n      text\n    z: 1\n"
    (parsed,) = documents(text, problems)
    below = parsed.place.below
    assert (parsed.place.line, below["a"].line, below["b"].line) == (1, 1, 2)
    items = below["b"].below["c"].below
    assert (items[0].line, items[1].line) == (4, 5)
    assert (items[1].below["w"].line, items[1].below["z"].line) == (5, 8)


def test_several_documents_have_their_own_lines():
    problems = []
    first, second = documents("# top\na: 1\n---\n\nb: 2\n", problems)
    assert (first.place.line, second.place.line) == (2, 5)


def test_json_is_read_with_its_lines_tabs_and_escapes():
    text = '{\n\t"a": "\\ud83d\\ude00 \\\\ud83d \\/",\n\t"b": [1,\n\t\t2]\n}'
    problems = []
    (parsed,) = documents(text, problems)
    assert parsed.value == json.loads(text)
    assert parsed.place.below["b"].below[1].line == 4
    assert problems == []


def test_json_may_go_on_as_yaml_with_its_own_lines():
    problems = []
    text = '{"a":\n1}\n---\nb: 2\n---\n{"c": 3}\n'
    found = list(documents(text, problems))
    assert problems == []
    assert [parsed.value for parsed in found] == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert [parsed.place.line for parsed in found] == [1, 4, 6]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("yes", "yes is read as true"),
        ("n", "n is read as false"),
        ("012", "number in base 8"),
        ("0b11", "number in base 2"),
        ("0X1f", "number in base 16"),
        ("1_000", "read as a number"),
        ("true", ""),
        ("~", ""),
        ("12", ""),
        ("0x1F", ""),
        ("0o17", ""),
        ("1e3", ""),
        ("1:30", ""),
        ("2026-01-01", ""),
        ("'yes'", ""),
        ("text", ""),
    ],
)
def test_what_yaml_1_2_reads_otherwise_is_told(written, words):
    (parsed,) = documents(f"a: {written}", [])
    odd = parsed.place.below["a"].odd
    assert words in odd and bool(words) == bool(odd)


def test_keys_that_yaml_1_2_reads_otherwise_are_told():
    (parsed,) = documents("on: 1\n2: x\n0x3: y\n010: z", [])
    assert parsed.value == {"true": 1, "2": "x", "3": True, "8": "z"}
    told = {key: place.odd_key for key, place in parsed.place.below.items()}
    assert "on is read as true" in told["true"]
    assert "base 8" in told["8"]
    assert not told["2"]


def test_aliases_and_merges_are_copies():
    value = parse("a: &a {x: {m: 1}, w: 2}\nb: *a\nc:\n  <<: *a\n  w: 3\nd:\n  <<: [*a, {z: 4}]\n")
    assert value["b"] == value["a"]
    assert value["b"] is not value["a"]
    assert value["b"]["x"] is not value["a"]["x"]
    assert value["c"] == {"x": {"m": 1}, "w": 3}
    assert value["d"] == {"x": {"m": 1}, "w": 2, "z": 4}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: b: c", 1, "not YAML"),
        ("a: 1\n\tb: 2", 2, "not YAML"),
        ("a:\n- 1\n b: 2\n", 3, "not YAML"),
        ("a: [1\nb: 2", 2, "not YAML"),
        ("a: 'x", 1, "not YAML"),
        ("a: 1\nb: \x01", 2, "not YAML"),
        ("a: 1\nb: 2\na: 3", 3, "given twice, first in line 1"),
        ("1.10: x", 1, "put it in quotes"),
        ("1e3: x", 1, "put it in quotes"),
        ("1: x\n0x1: y", 2, "given twice, first in line 1"),
        ("yes: x\ny: y", 2, "given twice, first in line 1"),
        ("null: x", 1, "put it in quotes"),
        ("? [a]\n: 1", 1, "a key must be text"),
        ("a:\n  b: {{ .Values.x }}", 2, "in quotes"),
        ("a: *b", 1, "stands for nothing"),
        ("a: &x\n- *x", 2, "inside of what it stands for"),
        ("a: &x b\n*x : 1", 2, "alias cannot be a key"),
        ("a: .inf", 1, "JSON"),
        ("a: .NaN", 1, "JSON"),
        ("a: ._5", 1, "versions of kubectl"),
        ("a: 1\n--- b: 2", 2, "comment after ---"),
        ("a: 1\n...\nb: 2", 3, "not YAML"),
        ("a: 1\r---\rb: 2", 2, "kubectl ignores this document"),
        ("a: 1\n\ufeffb: 2", 2, "byte order mark"),
        ('{"a": 1}\n{"b": 2}\nc: 3', 3, "not JSON"),
        ('{"a": 1}\n{"b": 1,\n"b": 2}', 3, "given twice, first in line 2"),
        ('{"a": 9223372036854775808}', 1, "rounds a number"),
        ('{"a": 1e999}', 1, "too large"),
        ("a: 99999999999999999999", 1, "rounds a number"),
        ("a: !mine x", 1, "tag is not supported"),
        ("a: !!binary aGk=", 1, "tag is not supported"),
        ("a: !!set {x}", 1, "tag is not supported"),
        ("a: !!int x", 1, "!!int"),
        ("a:\n  <<: 5", 2, "mappings only"),
        ('{"a": "\\ud83d"}', 1, "half of a character"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line(text, line, words):
    found = problems_of(text)
    assert found, "nothing was refused"
    assert any(at == line and words in message for at, _, message in found), found


def test_values_are_not_quoted_in_refusals():
    for text in (
        "!!int s3cret",
        "!!bool s3cret",
        "*s3cret",
        "!s3cret x",
        "!!s3cret x",
        "!s3cret {}",
    ):
        found = problems_of(f"data:\n  a: {text}")
        assert found and "s3cret" not in str(found)


def test_documents_before_broken_ones_are_still_given():
    problems = []
    found = [parsed.value for parsed in documents("a: 1\n---\nb: [\n", problems)]
    assert found == [{"a": 1}]
    assert len(problems) == 1


def test_several_problems_of_one_document_are_told_together():
    assert len(problems_of("a: .inf\nb: 1\nb: 2\n3.0: x\n")) == 3


def test_nesting_has_a_limit():
    deep = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
    assert "levels" in problems_of(deep)[0][2]
    assert problems_of("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []


def test_a_very_deep_text_does_not_exhaust_the_stack():
    assert "nesting" in problems_of("[" * 200_000)[0][2]


def test_a_bomb_of_aliases_is_refused_before_it_goes_off():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 12):
        lines.append(f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]")
    began = time.monotonic()
    ((_, _, message),) = problems_of("\n".join(lines))
    assert str(MAX_EXPANDED) in message
    assert time.monotonic() - began < 10


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def same(one, other):
    """Equality of JSON values; whole numbers may come as integers."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(same(one[key], other[key]) for key in one)
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, int):
        other = float(other)
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@given(_json)
def test_every_json_text_means_what_json_says(value):
    assert same(value, parse(json.dumps({"v": value}))["v"])


@given(_json)
def test_every_value_that_is_written_is_read_back(value):
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert same(value, parse(to_yaml({"v": value}))["v"])


@given(st.text(max_size=200))
def test_any_text_gives_values_or_problems_and_never_an_exception(text):
    problems = []
    list(documents(text, problems))
    assert all(problem.line >= 1 and problem.message for problem in problems)
