"""Files are divided into objects as kubectl divides them, or they are refused."""

import codecs
import random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from captfctl.embedded.described import load, scratch_store
from captfctl.embedded.described.parsing import candidates
from captfctl.embedded.described.reading import Text
from tests.kubeyaml import kubectl
from tests.support.clock import FakeClock

pytestmark = pytest.mark.kubectl


@pytest.fixture
def store():
    store = scratch_store(FakeClock(), [])
    yield store
    store.close()


def yaml_object(name):
    return f"apiVersion: v1\nkind: Any\nmetadata:\n  name: {name}\n"


def json_object(name):
    return '{"apiVersion":"v1",\n"kind":"Any",\t"metadata":{"name":"NAME"}}'.replace("NAME", name)


def read(text):
    """Objects and violations."""
    violations = []
    found = [item.document for item in candidates(Text("file", text), violations)]
    return found, violations


def described(text):
    found, violations = read(text)
    assert violations == []
    return found


BOM = "\ufeff"
FILES = {
    "two documents": f"{yaml_object('a')}---\n{yaml_object('b')}",
    "windows line ends": f"{yaml_object('a')}---\n{yaml_object('b')}".replace("\n", "\r\n"),
    "separators with comments": f"--- # one\n{yaml_object('a')}---\t# two\n{yaml_object('b')}---#x",
    "empty documents": (
        f"---\n---\n{yaml_object('a')}---\n# nothing\n---\n\n---\n{yaml_object('b')}"
    ),
    "files put together, each with a byte order mark": (
        f"{yaml_object('a')}---\n{BOM}{yaml_object('b')}"
    ),
    "a byte order mark first": f"{BOM}{yaml_object('a')}",
    "a byte order mark before json": f"{BOM}{json_object('a')}",
    "json objects in a row": f"{json_object('a')}{json_object('b')}\n\n  {json_object('c')}\n",
    "yaml that goes on as json": f"{yaml_object('a')}---\n{json_object('b')}",
    "numbers of json": (
        '{"apiVersion":"v1","kind":"Any","metadata":{"name":"a"},"n":[1.0,2e3,-0,1e21,1.5e-7]}'
    ),
    "escapes of json": (
        '{"apiVersion":"v1","kind":"Any","metadata":{"name":"a"},"s":"\\ud83d\\ude00\\/\\t\\u2028"}'
    ),
    "a list": f"apiVersion: v1\nkind: List\nitems:\n- {json_object('a')}\n- {json_object('b')}\n",
    "a typed list": "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n",
    "a typed list with another kind in it": (
        "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n"
        "- {apiVersion: v2, kind: Other, metadata: {name: b}}\n"
    ),
    "items of a kind that is called no list": (
        "apiVersion: v1\nkind: Things\nitems:\n- metadata: {name: a}\n"
    ),
    "no items": "apiVersion: v1\nkind: Any\nmetadata: {name: a}\nitems: null\n",
    "a merge before and after what it changes": (
        f"{yaml_object('a')}x: &x {{p: 1, q: 2}}\ny: {{p: 3, <<: *x}}\nz: {{<<: *x, p: 3}}\n"
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_objects_are_those_that_kubectl_reads(name):
    found = kubectl.read(FILES[name])
    assert not isinstance(found, str), found
    assert kubectl.same(described(FILES[name]), found)


@pytest.mark.parametrize("order", [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
def test_utf_16_is_read_where_a_byte_order_mark_says_so(tmp_path, store, order):
    encoding = "utf-16-le" if order == codecs.BOM_UTF16_LE else "utf-16-be"
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: caf\u00e9}\n"
    file = tmp_path / "file.yaml"
    file.write_bytes(order + text.encode(encoding))
    (theirs,) = kubectl.read(file.read_bytes())
    (mine,) = load([str(file)], store)
    assert mine.document["data"] == theirs["data"]


PIECES = ("---\n", "---\r\n", "--- # c\n", "\n", "# c\n", BOM, " ", "\t")


@settings(max_examples=12, phases=(Phase.generate,))
@given(st.integers(0, 2**32))
def test_what_kubectl_reads_otherwise_is_refused(seed):
    chance = random.Random(seed)
    text = ""
    for number in range(chance.randint(2, 5)):
        text += "".join(chance.choices(PIECES, k=chance.randint(0, 2)))
        text += chance.choice((yaml_object, json_object))(f"n{number}")
        text += chance.choice(("---\n", "\n---\n", "", "\n"))
    found, violations = read(text)
    theirs = kubectl.read(text)
    if not violations and not isinstance(theirs, str):
        assert kubectl.same(found, theirs), text
