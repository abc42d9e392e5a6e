"""Which values are secret, and that none of them is shown (runner.md: Redaction)."""

import base64
import json
import os
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner import secret_sources
from runner.redact import REPLACEMENT, Redactor, SecretSet
from tests.runner.harness import Job


def _redactor(*values: bytes | tuple[bytes, int]) -> Redactor:
    secrets = SecretSet()
    for value in values:
        secrets.add(*value) if isinstance(value, tuple) else secrets.add(value)
    return Redactor(secrets)


def _reference(forms: set[bytes], text: bytes) -> bytes:
    """The rule, told plainly: left to right, the longest form at each place."""
    done, position = [], 0
    ordered = sorted(forms, key=len, reverse=True)
    while position < len(text):
        for form in ordered:
            if text.startswith(form, position):
                done.append(REPLACEMENT)
                position += len(form)
                break
        else:
            done.append(text[position : position + 1])
            position += 1
    return b"".join(done)


def test_values_of_four_bytes_are_replaced_and_shorter_ones_are_not():
    assert _redactor(b"abcd", b"xyz").redact(b"abcd xyz abcde") == b"(sensitive) xyz (sensitive)e"


def test_without_secrets_the_text_is_unchanged():
    assert Redactor().redact(b"abcd") == b"abcd"


def test_the_longest_of_overlapping_secrets_wins_at_each_place():
    redactor = _redactor(b"abcd", b"abcdefgh", b"efgh1234")
    assert redactor.redact(b"abcdefgh1234") == b"(sensitive)1234"
    assert redactor.redact(b"abcdefg") == b"(sensitive)efg"


def test_escaped_forms_are_replaced():
    secret = 'line "one" <x>\\\n${two}'
    redactor = _redactor(secret.encode())
    go = json.dumps(secret).replace("<", "\\u003c").replace(">", "\\u003e")
    language = json.dumps(secret).replace("${", "$${")
    for text in (secret, json.dumps(secret)[1:-1], go[1:-1], language[1:-1]):
        assert redactor.redact(text.encode()) == REPLACEMENT


KEY = "-----BEGIN KEY-----\n" + "c2VjcmV0IGtleSBtYXRlcmlhbA==\n" * 2 + "-----END KEY-----\n"


def test_every_line_of_a_secret_of_several_lines_is_replaced():
    redactor = _redactor(KEY.encode())
    assert redactor.redact(b"  c2VjcmV0IGtleSBtYXRlcmlhbA==  ") == b"  (sensitive)  "
    assert redactor.redact(KEY.encode()) == REPLACEMENT


def test_lines_shorter_than_the_secrets_minimum_stay():
    script = b"#!/bin/sh\nif true; then\n  token=abcdefghijklmnop\ndone\n"
    redactor = _redactor((script, 16))
    assert redactor.redact(b"if true; then\ndone") == b"if true; then\ndone"
    assert redactor.redact(b"token=abcdefghijklmnop") == REPLACEMENT
    assert redactor.redact(script) == REPLACEMENT


def test_a_line_with_several_minimums_gets_the_largest():
    secrets = SecretSet()
    secrets.add(b"short line\nx", 4)
    secrets.add(b"short line\ny", 16)
    assert Redactor(secrets).redact(b"short line") == b"short line"


ALPHABET = st.sampled_from([b"a", b"b", b"\n", b"\xc3", b'"'])
TEXT = st.lists(ALPHABET, max_size=60).map(b"".join)
VALUES = st.lists(st.lists(ALPHABET, min_size=1, max_size=24).map(b"".join), max_size=6)


@given(VALUES, TEXT)
@example([b"abab", b"ababab"], b"abababab")
def test_a_whole_text_is_redacted_by_the_rule(values, text):
    secrets = SecretSet()
    for value in values:
        secrets.add(value)
    assert Redactor(secrets).redact(text) == _reference(secrets.forms(), text)


@given(VALUES, TEXT, st.integers(1, 9))
def test_a_stream_is_redacted_as_the_whole_text_is(values, text, size):
    secrets = SecretSet()
    for value in values:
        secrets.add(value)
    redactor = Redactor(secrets)
    stream = redactor.stream()
    pieces = [stream.feed(text[start : start + size]) for start in range(0, len(text), size)]
    longest = max(map(len, secrets.forms()), default=0)
    if longest < 16:  # a longer cut-off beginning is replaced as well
        assert b"".join(pieces) + stream.flush() == redactor.redact(text)
    else:
        shown = b"".join(pieces) + stream.flush()
        assert not any(form in shown for form in secrets.forms())


@given(st.integers(17, 300), st.integers(0, 2**32), st.integers(1, 4096))
def test_many_secrets_are_found_wherever_they_stand(count, seed, size):
    import random

    rng = random.Random(seed)
    values = [rng.randbytes(rng.choice((5, 9, 15, 40))).hex().encode() for _ in range(count)]
    text = b"".join(
        rng.randbytes(rng.randrange(20)) + (rng.choice(values) if rng.random() < 0.3 else b"")
        for _ in range(200)
    )
    secrets = SecretSet()
    for value in values:
        secrets.add(value)
    redactor = Redactor(secrets)
    expected = _reference(set(values), text)
    assert redactor.redact(text) == expected
    stream = redactor.stream()
    shown = [stream.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert b"".join(shown) + stream.flush() == expected


def test_text_without_a_secret_passes_at_once():
    stream = _redactor(b"secret-value").stream()
    assert stream.feed(b"nothing to hide\n") == b"nothing to hide\n"
    assert stream.due() == float("inf")


def test_what_may_be_a_beginning_is_held_back_for_a_second():
    stream = _redactor(b"secret-value").stream()
    assert stream.feed(b"a secr") == b"a "
    assert 0 < stream.due() - time.monotonic() <= 1
    assert stream.feed(b"et-val") == b""
    assert stream.feed(b"ue!") == b"(sensitive)!"
    assert stream.feed(b"secret-") == b""
    assert stream.flush() == b"secret-"


def test_a_long_beginning_at_the_end_of_a_stream_is_not_shown():
    stream = _redactor(b"a-very-long-secret-value").stream()
    assert stream.feed(b"token: a-very-long-secret-val") == b"token: "
    assert stream.flush() == REPLACEMENT


def test_a_stream_holds_no_more_than_the_longest_secret():
    secret = b"0123456789" * 1000
    stream = _redactor(secret).stream()
    endless = b"0123456789" * 900
    shown = 0
    for _ in range(50):
        shown += len(stream.feed(endless))
        assert len(stream._held) <= len(secret)
    assert shown > 0


def _environment(**variables: str) -> Redactor:
    return Redactor(secret_sources.of_environment(variables))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("token", "ghp_abcdef"),
        ("OS_PASSWORD", "pw12"),
        ("AWS_SECRET_ACCESS_KEY", "abcd"),
        ("opaque", "0123456789abcdef"),
        ("GOOGLE_CREDENTIALS", "{}{}"),
        ("MY_SESSION", "cookie"),
    ],
)
def test_variables_that_tell_or_look_like_secrets_are(name, value):
    assert _environment(**{name: value}).redact_text(f"x{value}y") == "x(sensitive)y"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_REGION", "us-east-1"),
        ("PATH", "/usr/local/sbin:/usr/local/bin"),
        ("HOME", "/captf/work/long/path"),
        ("KUBE_NAMESPACE", "a-namespace-of-some-length"),
        ("KUBERNETES_SERVICE_HOST", "fd00:1234:5678:9abc::1"),
        ("TF_DATA_DIR", "/captf/work/.terraform"),
        ("EMPTY_TOKEN", ""),
        ("SHORT_KEY", "abc"),
    ],
)
def test_other_variables_are_not(name, value):
    assert _environment(**{name: value}).redact_text(f"x{value}y") == f"x{value}y"


def _inputs(tmp_path, variables: object, values: object) -> Redactor:
    (tmp_path / "main.tf.json").write_text(json.dumps({"variable": variables}))
    (tmp_path / "terraform.tfvars.json").write_text(json.dumps(values))
    return Redactor(secret_sources.of_inputs(str(tmp_path)))


def test_sensitive_variables_are_hidden_whole_and_by_leaf(tmp_path):
    redactor = _inputs(
        tmp_path,
        {"one": {"sensitive": True}, "map": {"sensitive": True}, "plain": {"sensitive": False}},
        {
            "one": "text-one",
            "map": {"a": ["leaf-one", 5], "b": {"c": "leaf-two"}},
            "plain": "shown",
        },
    )
    shown = redactor.redact_text("text-one leaf-one leaf-two shown")
    assert shown == "(sensitive) (sensitive) (sensitive) shown"


@pytest.mark.parametrize("variables", [[], 7, {"x": 7}, {"x": [7]}, None])
def test_malformed_declarations_contribute_nothing(tmp_path, variables):
    assert _inputs(tmp_path, variables, {"x": "value"}).empty
    (tmp_path / "terraform.tfvars.json").write_bytes(b"\xff{")
    assert Redactor(secret_sources.of_inputs(str(tmp_path))).empty
    assert Redactor(secret_sources.of_inputs("/nonexistent")).empty


SCRIPT = "#cloud-config\nif true; then\n  kubeadm join --token abcdef.0123456789abcdef\ndone\n"


@pytest.mark.parametrize("sensitive_in_plan", [False, True])
def test_bootstrap_data_is_hidden_raw_and_decoded_but_not_its_short_lines(
    tmp_path, sensitive_in_plan
):
    encoded = base64.b64encode(SCRIPT.encode()).decode()
    secrets = SecretSet()
    (tmp_path / "terraform.tfvars.json").write_text(json.dumps({"bootstrap_data": encoded}))
    secrets.update(secret_sources.of_inputs(str(tmp_path)))
    if sensitive_in_plan:
        secrets.add(SCRIPT.encode(), 16)
    redactor = Redactor(secrets)
    assert redactor.redact_text(f"<{encoded}>") == "<(sensitive)>"
    assert redactor.redact_text(f"<{SCRIPT}>") == "<(sensitive)>"
    assert redactor.redact_text("kubeadm join --token abcdef.0123456789abcdef") == "(sensitive)"
    assert redactor.redact_text("if true; then\ndone\n") == "if true; then\ndone\n"


PLAN = {
    "resource_changes": [
        {
            "address": "a.b",
            "change": {
                "actions": ["no-op"],
                "before": {"p": "old-password", "id": "i-0123456789"},
                "before_sensitive": {"p": True},
                "after": {"p": "new-password", "list": ["plain-element", "secret-element"]},
                "after_sensitive": {"p": True, "list": [False, True]},
            },
        },
        {
            "address": "a.c",
            "change": {"actions": ["update"], "before": {}, "after": {"x": "changed"}},
        },
    ],
    "output_changes": {
        "zone": {
            "actions": ["create"],
            "after": "europe-west-1b",
            "after_sensitive": True,
        }
    },
    "prior_state": {
        "values": {
            "root_module": {
                "child_modules": [
                    {
                        "resources": [
                            {
                                "mode": "data",
                                "values": {"token": "data-source-token"},
                                "sensitive_values": {"token": True},
                            },
                            {
                                "mode": "managed",
                                "values": {"id": "managed-identity"},
                                "sensitive_values": {"id": True},
                            },
                        ]
                    }
                ]
            }
        }
    },
}


@pytest.mark.parametrize("flags", [["--op=plan"], ["--op=apply", "--guard-deletes"]])
def test_values_the_plan_marks_sensitive_are_hidden_afterwards(job: Job, flags):
    hidden = ["old-password", "new-password", "secret-element", "data-source-token"]
    kept = ["i-0123456789", "plain-element", "europe-west-1b", "managed-identity"]
    job.play("plan", exit=2)
    job.play("show", json.dumps(PLAN))
    message = {"@message": " ".join(hidden + kept), "type": "log"}
    failed = {"severity": "error", "summary": " ".join(hidden)}
    diagnostic = {"type": "diagnostic", "@message": "x", "diagnostic": failed}
    job.play("apply", json.dumps(message) + "\n" + json.dumps(diagnostic) + "\n", exit=1)
    outcome = job.run(*flags)
    if flags == ["--op=plan"]:
        assert outcome.exit == 0
        return
    assert not any(value in outcome.everything for value in hidden)
    assert all(value in outcome.out for value in kept)
    assert outcome.error["tail"].count("(sensitive)") == 4


def test_a_summary_is_redacted_before_it_is_cut(job: Job):
    job.environ["MY_TOKEN"] = "abcd é "
    job.play("init", err="Error: " + "abcd é " * 200 + "\n", exit=1)
    tail = job.run("--op=refresh").error["tail"]
    assert len(tail.encode()) <= 512
    assert set(re.sub(r"\(sensitive\)", "", tail.removeprefix("Error: "))) <= set("(sensitive)")
    assert "abcd" not in tail


def test_the_output_of_every_step_is_redacted_across_its_writes(job: Job):
    job.environ["MY_TOKEN"] = "split-canary"
    halves = 'printf "a split-"; printf canary; printf "b\\n split-" >&2; printf canary >&2'
    for name in ("init", "apply-refresh-only"):
        job.play(name, script=halves)
    outcome = job.run("--op=refresh")
    assert "split-canary" not in outcome.everything
    assert outcome.out == "a (sensitive)" * 2
    assert outcome.err.count("(sensitive)") == 2


def test_bytes_that_are_no_text_pass_unchanged(job: Job):
    noise = bytes(range(256)) * 10
    job.play("init", noise)
    job.play("apply-refresh-only", noise)
    exit_code = job.start("--op=refresh").end().exit
    assert exit_code == 0
    assert (job.path / "stdout").read_bytes() == noise * 2


def test_redaction_keeps_up_with_a_log(benchmark_seconds=2.0):
    secrets = SecretSet()
    for number in range(200):
        secrets.add(b"secret-%d-" % number + os.urandom(16).hex().encode())
    redactor = Redactor(secrets)
    text = b"2024-01-01T00:00:00Z module.role.thing: Still creating... [10s elapsed]\n" * 900
    started = time.perf_counter()
    stream = redactor.stream()
    for _ in range(50):
        stream.feed(text)
    # Far below the benchmark's aim: a position-by-position search would still miss it widely.
    assert 50 * len(text) / (time.perf_counter() - started) > 5e6
