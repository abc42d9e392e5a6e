"""YAML and JSON texts: values as kubectl has them, lines, and everything that is refused."""

import json
import re
import time

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from captfctl.kubeyaml import MAX_DEPTH, MAX_EXPANDED, documents


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
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
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
        ("{x: {y: z}}", {"x": {"y": "z"}}),
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
    text = "a: 1\nb:\n  c:\n  - x\n  - y: |\n      long\n      text\n    z: 1\n"
    (parsed,) = documents(text, problems)
    below = parsed.place.below
    assert (parsed.place.line, below["a"].line, below["b"].line) == (1, 1, 2)
    items = below["b"].below["c"].below
    assert (items[0].line, items[1].line) == (4, 5)
    assert (items[1].below["y"].line, items[1].below["z"].line) == (5, 8)


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


def test_aliases_and_merges_are_copies():
    value = parse("a: &a {x: {n: 1}, y: 2}\nb: *a\nc:\n  <<: *a\n  y: 3\nd:\n  <<: [*a, {z: 4}]\n")
    assert value["b"] == value["a"]
    assert value["b"] is not value["a"]
    assert value["b"]["x"] is not value["a"]["x"]
    assert value["c"] == {"x": {"n": 1}, "y": 3}
    assert value["d"] == {"x": {"n": 1}, "y": 2, "z": 4}


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
        ("1: x", 1, "put it in quotes"),
        ("true: x", 1, "put it in quotes"),
        ("null: x", 1, "put it in quotes"),
        ("? [a]\n: 1", 1, "a key must be text"),
        ("a:\n  b: {{ .Values.x }}", 2, "in quotes"),
        ("a: *b", 1, "stands for nothing"),
        ("a: &x\n- *x", 2, "inside of what it stands for"),
        ("a: &x b\n*x : 1", 2, "alias cannot be a key"),
        ("a: .inf", 1, "JSON"),
        ("a: .NaN", 1, "JSON"),
        ("a: 1e999", 1, "too large"),
        ("a: 99999999999999999999", 1, "64 bits"),
        ("a: !mine x", 1, "!mine"),
        ("a: !!binary aGk=", 1, "binary"),
        ("a: !!set {x}", 1, "set"),
        ("a: !!int x", 1, "!!int"),
        ("a:\n  <<: 5", 2, "mappings only"),
        ('{"a": "\\ud83d"}', 1, "not YAML"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line(text, line, words):
    found = problems_of(text)
    assert found, "nothing was refused"
    assert any(at == line and words in message for at, _, message in found), found


def test_values_are_not_quoted_in_refusals():
    assert "s3cret" not in str(problems_of("data:\n  a: !!int s3cret\n  b: !!bool s3cret"))


def test_documents_before_broken_ones_are_still_given():
    problems = []
    found = [parsed.value for parsed in documents("a: 1\n---\nb: [\n", problems)]
    assert found == [{"a": 1}]
    assert len(problems) == 1


def test_several_problems_of_one_document_are_told_together():
    assert len(problems_of("a: .inf\nb: 1\nb: 2\n3: x\n")) == 3


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
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@given(_json)
def test_every_json_text_means_what_json_says(value):
    assert same(value, parse(json.dumps({"v": value}))["v"])


class Writer(yaml.SafeDumper):
    """One that knows that kubectl reads `0E0` and `0o7` as numbers, unlike YAML 1.1, so that texts
    like these need quotes."""


Writer.add_implicit_resolver(
    "!like-a-number", re.compile(r"[-+]?\.?[0-9].*", re.DOTALL), list("+-.0123456789")
)


@example({"0E0": "0E0", "1e5": "0o7"})
@given(_json)
def test_every_yaml_text_written_by_a_library_is_read_back(value):
    def plain(text):
        return not any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 or ord(c) > 0xFFFD for c in text)

    text = yaml.dump({"v": value}, Dumper=Writer, allow_unicode=False)
    if plain(text.replace("\n", "")):
        assert same(value, parse(text)["v"])


@given(st.text(max_size=200))
def test_any_text_gives_values_or_problems_and_never_an_exception(text):
    problems = []
    list(documents(text, problems))
    assert all(problem.line >= 1 and problem.message for problem in problems)
