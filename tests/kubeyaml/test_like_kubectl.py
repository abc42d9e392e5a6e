"""Generated scalars and documents mean what they mean to kubectl, or they are refused."""

import json
import random
import re

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from captfctl.kubeyaml import documents, to_yaml
from tests.kubeyaml import kubectl

pytestmark = pytest.mark.kubectl

GENERATE = (Phase.generate,)
"""A seed has no simpler form."""

_WORDS = """
y Y yes Yes YES yEs n N no No NO on On ON oN off Off OFF true True TRUE tRue false False
FALSE ~ null Null NULL nUll .inf -.inf .nan +.INF << = 1:30 12:30:45 2026-01-01
2026-01-01T12:00:00Z 2001-12-14t21:59:43.10-05:00 1_000 012 0o7 0b11 0x1F .5 1. 1e3 1E400
-1e-400 -0 -0.0 08 1e16 1e20 1e21 1.2345678901234567e18 9223372036854775807
9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615
18446744073709551616 0xffffffffffffffff 0b-1 +0x1 1.2.3 10m 1Gi - -- + 0x 0b 0o 00 0_ _1
1__0 +.5 -.5e3 1.e3 . ..
"""
ALPHABETS = ("0123456789+-._eExXoObB:aAfF", "01234567_.e", "0123456789", "01_", "yYnNoOfFtT")
PREFIXES = ("", "", "0x", "0b", "0o", "0", "-", "+", "-0x", "0b-", "+0b", ".", "0X", "0B", "0O")


def scalars(seed: int, count: int) -> list[str]:
    """Plain scalars that look like something else than text, each in one line of YAML."""
    chance = random.Random(seed)
    found = set(_WORDS.split())
    while len(found) < count:
        letters, length = chance.choice(ALPHABETS), chance.randint(1, 22)
        body = "".join(chance.choices(letters, k=chance.choice((2, 4, length))))
        found.add(chance.choice(PREFIXES) + body)
    return sorted(text for text in found if not re.search(r":$|^-$", text))


def ours(text):
    """Values and problems."""
    problems = []
    found = [parsed.value for parsed in documents(text, problems) if parsed.value is not None]
    return found, problems


HEAD = "apiVersion: v1\nkind: Any\nmetadata: {name: a}\n"


def rounded_or_impossible(text: str) -> bool:
    """What may be refused although kubectl takes it."""
    bare = text.replace("_", "").lower()
    if bare.lstrip("+-") in (".inf", ".nan"):
        return True
    if text.startswith(".") and "_" in text:
        return True
    for base in (0, 8, 10):
        try:
            return abs(int(bare, base)) >= (2**53 if bare.lstrip("+-").startswith("0") else 2**63)
        except ValueError:
            continue
    return False


@settings(max_examples=3, phases=GENERATE)
@given(st.integers(0, 2**32))
def test_plain_scalars_are_what_they_are_to_kubectl(seed):
    taken, refused = [], []
    for text in scalars(seed, 1500):
        (refused if ours(f"v: {text}")[1] else taken).append(text)
    assert len(taken) > 1000
    assert [text for text in refused if not rounded_or_impossible(text)] == []
    as_values = "v:\n" + "".join(f"- {text}\n" for text in taken)
    keys = [text for text in taken if not ours(f"{text}: x")[1]]
    as_keys = "".join(f"- {text}: x\n" for text in keys)
    whole = f"{HEAD}{as_values}k:\n{as_keys}"
    (found,) = kubectl.read(whole)
    (read,), problems = ours(whole)
    assert problems == []
    differing = [
        (text, mine, theirs)
        for texts, section in ((taken, "v"), (keys, "k"))
        for text, mine, theirs in zip(texts, read[section], found[section], strict=True)
        if not kubectl.same(mine, theirs)
    ]
    assert differing == []


PIECES = (
    "a: &a {p: 1, q: [x, yes]}\n",
    "b: {<<: *a, p: 2}\n",
    "c: {p: 2, <<: *a, q: 3}\n",
    "d: {<<: [*a, {p: 9, r: 8}]}\n",
    "e: *a\n",
    "f: |\n  one\n  two\n",
    "g: >-\n  one\n  two\n\n  three\n",
    "h: 'it''s'\n",
    'i: "tab\\t\\u00e9 \\x41"\n',
    "j: {on: 1, 2: x, 0x10: z}\n",
    "k: [~, '', null, \"null\"]\n",
    "l: !!str 12\n",
    "m: ! 12\n",
    "n: !!float 3\n",
    "o:\n- - 1\n  - 2\n-\n- x: 1\n  y: 2\n",
    "p: plain text # and a comment\n",
    "# a comment\n",
    "\n",
    'q: "two\n  lines"\n',
    "r: two\n  lines\n",
    "s: a#b:c\n",
    "? t\n: u\n",
    "v: caf\u00e9 \U0001f600\r\n",
)


@settings(max_examples=12, phases=GENERATE)
@given(st.integers(0, 2**32))
def test_documents_are_what_they_are_to_kubectl(seed):
    chance = random.Random(seed)
    text = HEAD + "".join(chance.sample(PIECES, chance.randint(2, 12)))
    read, problems = ours(text)
    found = kubectl.read(text)
    if problems:
        assert isinstance(found, str), (text, problems)
    else:
        assert kubectl.same(read, found), text


def texts(seed: int) -> list[str]:
    chance = random.Random(seed)
    letters = "aZ01 ~|>:#-?!&*%@`\"'{}[],.\n\t\\\u00e9\u2028\U0001f600"
    made = ["".join(chance.choices(letters, k=chance.randint(0, 8))) for _ in range(300)]
    return [*made, *scalars(seed, 300), "", " ", "trailing \n", "\n", "---", "...", "\ufeff"]


@settings(max_examples=3, phases=GENERATE)
@given(st.integers(0, 2**32))
def test_what_is_written_is_read_back_by_kubectl_and_here(seed):
    wanted = {
        "apiVersion": "v1",
        "kind": "Any",
        "metadata": {"name": "a"},
        "texts": texts(seed),
        "keys": dict.fromkeys(texts(seed), 1),
        "others": [1, -1, 1.5, 1e300, True, False, None, [], {}, [[1], {"a": []}]],
    }
    written = to_yaml(wanted)
    assert json.loads(json.dumps(ours(written)[0])) == [wanted]
    assert kubectl.same(kubectl.read(written), [wanted])
