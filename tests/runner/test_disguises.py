"""A secret is found in the forms that common tools give it (runner.md: How secrets are found)."""

import base64
import json
import random
import shlex
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.redact import Redactor, SecretSet
from tests.runner.test_real_runtime import RUNTIMES

NASTY = "abcXYZ019 '\"\\$`!*?[](){}<>|&;~#%^,.:/@=+-_\n\té\x01"
VALUES = st.text(st.sampled_from(NASTY), min_size=4, max_size=40)
BYTES = st.binary(min_size=4, max_size=200)


def redactor(*values: bytes) -> Redactor:
    secrets = SecretSet()
    for value in values:
        secrets.add(value)
    return Redactor(secrets)


def same_wherever(value: bytes, before: int) -> bytes:
    """The characters of base64 that stay the same whatever stands around the value."""
    one = base64.b64encode(b"\x00" * before + value + b"\x00\x00")
    other = base64.b64encode(b"\xff" * before + value + b"\xff\xff")
    length = (before + len(value)) * 8 // 6
    pairs = list(zip(one, other, strict=True))[:length]
    return bytes(a for a, b in pairs if a == b)


@given(BYTES, st.binary(max_size=9), st.binary(max_size=9))
def test_base64_at_any_offset_of_a_longer_text(value, before, after):
    shown = redactor(value).redact(base64.b64encode(before + value + after))
    assert same_wherever(value, len(before) % 3) not in shown
    assert b"(sensitive)" in shown


@given(BYTES, st.binary(max_size=9), st.binary(max_size=9))
def test_base64_of_the_alphabet_for_urls(value, before, after):
    shown = redactor(value).redact(base64.urlsafe_b64encode(before + value + after))
    core = same_wherever(value, len(before) % 3).translate(bytes.maketrans(b"+/", b"-_"))
    assert core not in shown


@pytest.mark.parametrize("columns", [64, 76])
def test_base64_of_the_value_alone_broken_into_lines(columns):
    value = random.Random(2).randbytes(300)
    text = base64.b64encode(value).decode()
    lines = [text[at : at + columns] for at in range(0, len(text), columns)]
    shown = redactor(value).redact_text("\n".join(lines))
    assert not any(line in shown for line in lines if len(line) >= 16)


@given(VALUES)
def test_url_encoding_as_common_libraries_have_it(value):
    hidden = redactor(value.encode())
    for safe in ("", "/", "!'()*", "$&+,/:;=@"):
        for encode in (urllib.parse.quote, urllib.parse.quote_plus):
            assert hidden.redact_text(encode(value, safe=safe)) == "(sensitive)"


@given(VALUES)
def test_json_of_any_writer_and_json_within_json(value):
    hidden = redactor(value.encode())
    plain = json.dumps(value, ensure_ascii=False)
    for text in (
        json.dumps(value),
        plain,
        plain.replace("/", "\\/"),
        json.dumps({"policy": json.dumps({"p": value}, ensure_ascii=False)}, ensure_ascii=False),
    ):
        shown = hidden.redact_text(text)
        assert "(sensitive)" in shown
        assert json.dumps(value, ensure_ascii=False)[1:-1] not in shown or value.isspace()


def shells(value: str) -> Iterator[str]:
    """The value as shells quote it."""
    yield shlex.quote(value)
    script = 'printf "%q\\0" "$1"; printf "%s\\0" "${1@Q}"; set -x; : "$1"'
    bash = shutil.which("bash")
    if bash is None:
        return
    done = subprocess.run([bash, "-c", script, "x", value], capture_output=True, check=True)
    yield from (text.decode() for text in done.stdout.split(b"\0")[:2])
    yield done.stderr.decode().removeprefix("+ : ").removesuffix("\n")
    dash = shutil.which("dash")
    if dash is not None:
        done = subprocess.run([dash, "-xc", ': "$1"', "x", value], capture_output=True, check=True)
        yield done.stderr.decode().removeprefix("+ : ").removesuffix("\n")


def test_what_shells_print_of_a_value():
    rng = random.Random(5)
    letters = NASTY.replace("\x01", "")
    for _ in range(60):
        value = "".join(rng.choices(letters, k=rng.randint(6, 20)))
        hidden = redactor(value.encode())
        for text in shells(value):
            shown = hidden.redact_text(text)
            assert "(sensitive)" in shown, (value, text)
            rest = shown.replace("(sensitive)", "")
            assert set(rest) <= set("'\"$"), (value, text, shown)


@pytest.mark.terraform
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_the_runtimes_own_functions_make_of_a_value(runtime, tmp_path):
    rng = random.Random(7)
    letters = NASTY.replace("\x01", "").replace("\n", "").replace("\t", "")
    values = ["".join(rng.choices(letters, k=rng.randint(6, 20))) for _ in range(40)]
    hidden = redactor(*(value.encode() for value in values))
    (tmp_path / "v.auto.tfvars.json").write_text(json.dumps({"v": values}))
    (tmp_path / "main.tf").write_text('variable "v" {\n  type = list(string)\n}\n')
    expression = (
        "jsonencode([for v in var.v : [urlencode(v), base64encode(v), jsonencode(v), "
        'jsonencode({ p = jsonencode(v) }), base64encode("x${v}y"), base64encode("xy${v}")]])\n'
    )
    done = subprocess.run(
        [runtime, "console"], cwd=tmp_path, input=expression, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    texts = json.loads(json.loads(done.stdout))
    for value, forms in zip(values, texts, strict=True):
        for form in forms:
            shown = hidden.redact_text(form)
            assert "(sensitive)" in shown, (value, form)
            assert len(shown.replace("(sensitive)", "")) <= 14, (value, form, shown)


def test_a_value_that_needs_no_escape_has_few_forms():
    """Thousands of them would cost every byte of the log."""
    secrets = SecretSet()
    secrets.add(b"plain-value_123")
    assert len(secrets.forms()) <= 12


def test_forms_of_a_large_value_are_made_quickly(benchmark_seconds=2.0):
    import time

    secrets = SecretSet()
    text = random.Random(1).randbytes(30_000).hex()
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    started = time.process_time()
    secrets.add("\n".join(f"- {line}: 'x'" for line in lines).encode())
    Redactor(secrets)
    assert time.process_time() - started < 10 * benchmark_seconds
