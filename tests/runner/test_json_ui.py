"""Rendering the runtime's JSON messages and reading them (runner.md: Rendering JSON messages)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import summary, ui, wire
from runner.diagnostics import Diagnostic
from runner.execute import Ended
from runner.redact import Redactor, SecretSet
from tests.runner.harness import Job


class Written:
    """Collects what is written."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    @property
    def text(self) -> str:
        return self.data.decode()


def _rendered(data: bytes, pieces: int = 0, secret: bytes = b"") -> tuple[ui.JsonUi, str, str]:
    secrets = SecretSet()
    if secret:
        secrets.add(secret)
    out, err = Written(), Written()
    rendered = ui.JsonUi(Redactor(secrets), out, err)
    for start in range(0, len(data), pieces or len(data) or 1):
        rendered.feed(data[start : start + (pieces or len(data))])
    rendered.close()
    return rendered, out.text, err.text


def _message(**fields: object) -> bytes:
    return json.dumps({"@level": "info", **fields}).encode() + b"\n"


def _diagnostic(severity: str = "error", **fields: object) -> bytes:
    return _message(
        **{"@message": "Error: x", "type": "diagnostic"},
        diagnostic={"severity": severity, **fields},
    )


LOG = (
    _message(**{"@message": "Terraform 1.11.4", "type": "version"})
    + _message(**{"@message": "a.b: Creating...", "type": "apply_start"})
    + _diagnostic(summary="Failed", detail="first\nsecond", address="a.b")
    + _diagnostic("warning", summary="Old", detail="")
    + _message(**{"@message": "Outputs: 1", "type": "outputs"}, outputs={"o": {"value": "raw"}})
    + b"panic: runtime error\n\tat main.go:1\n"
    + b"[1,2]\n\n"
    + b'{"neither":"type nor message"}\n'
    + _message(**{"@message": "no line break é", "type": "log"}).rstrip(b"\n")
)


@given(st.integers(1, 200))
def test_messages_split_anywhere_render_whole(pieces):
    rendered, out, err = _rendered(LOG, pieces)
    assert out == (
        "Terraform 1.11.4\na.b: Creating...\nWarning: Old\nOutputs: 1\n"
        "panic: runtime error\n\tat main.go:1\n[1,2]\n"
        '{"neither":"type nor message"}\nno line break é\n'
    )
    assert err == "Error: Failed\n\n  with a.b\n\nfirst\nsecond\n"
    assert [diagnostic.summary for diagnostic in rendered.diagnostics] == ["Failed"]


def test_a_line_that_is_too_long_becomes_a_note_and_the_next_is_intact():
    secret = b"hidden-value"
    line = b"x" * ((1 << 20) + 1 - len(secret)) + secret
    for pieces in (0, 65536):
        _, out, _ = _rendered(line + b"\nnext\n", pieces, secret)
        note, following = out.splitlines()
        assert following == "next"
        assert len(note) < 100 and "xxx" not in note
    _, out, _ = _rendered(b"y" * (1 << 20) + b"\n")
    assert out == "y" * (1 << 20) + "\n"


def test_colours_are_removed_after_the_redaction():
    _, out, _ = _rendered(_message(**{"@message": "\x1b[1mbold\x1b[0m secret1"}), secret=b"secret1")
    assert out == "bold (sensitive)\n"


def _failing(*diagnostics: dict[str, object], errored: list[str]) -> tuple[str, ...]:
    data = b"".join(
        _message(**{"@message": "e", "type": "apply_errored"}, hook={"resource": {"addr": address}})
        for address in errored
    )
    data += b"".join(_diagnostic(**diagnostic) for diagnostic in diagnostics)
    return _rendered(data)[0].failing_resources()


def _context(text: str) -> dict[str, object]:
    return {"summary": "s", "snippet": {"context": text}}


def test_failing_resources_are_found_by_address_queue_and_source():
    found = _failing(
        {"summary": "one\nmore"},
        {"summary": "two", "address": "module.m.a.y"},
        _context('data "d" "n"'),
        _context('module "m"'),
        _context('resource "r" "s"'),
        errored=["module.m.a.x", "module.m.a.y"],
    )
    assert found == (
        "module.m.a.x: one",
        "module.m.a.y: two",
        "data.d.n: s",
        "r.s: s",
    )


def test_at_most_ten_failing_resources_of_at_most_512_bytes_are_named():
    found = _failing(
        *[{"summary": "é" * 400, "address": f"a.b[{number}]"} for number in range(30)], errored=[]
    )
    assert len(found) == 10
    assert all(500 < len(entry.encode()) <= 512 for entry in found)


def test_the_same_failure_is_named_once():
    same = {"summary": "s", "address": "a.b"}
    assert _failing(same, same, errored=[]) == ("a.b: s",)


COUNTED = "Apply complete! Resources: 1 imported, 2 added, 0 changed, 3 destroyed."


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (COUNTED, (2, 0, 3, 1)),
        ("Apply complete! Resources: 2 added, 1 changed, 0 destroyed.", (2, 1, 0, 0)),
        ("Apply complete! Resources: 2 added, 1 changed, 0 destroyed, 2 forgotten.", (2, 1, 0, 0)),
        (f"\x1b[1m\x1b[32m{COUNTED}\x1b[0m", (2, 0, 3, 1)),
        (COUNTED + "\r", (2, 0, 3, 1)),
        (f"other\n{COUNTED}\nOutputs:", (2, 0, 3, 1)),
        ("Destroy complete! Resources: 4 destroyed.", (0, 0, 4, 0)),
        (f"{COUNTED}\nDestroy complete! Resources: 4 destroyed.", (0, 0, 4, 0)),
        (f"then: {COUNTED}", None),
        ("x" * 1500 + COUNTED, None),
        ("Apply complete! Resources: many added, 1 changed, 0 destroyed.", None),
    ],
)
@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_the_closing_line_gives_the_counts(text, counts, piece):
    scanner = ui.CountScanner()
    data = text.encode()
    for start in range(0, len(data), piece):
        scanner.feed(data[start : start + piece])
    scanner.close()
    assert scanner.counts == (None if counts is None else wire.Changes(*counts))


def test_a_line_after_one_too_long_is_scanned_again():
    scanner = ui.CountScanner()
    scanner.feed(b"x" * 1500 + b"\n" + COUNTED.encode() + b"\n")
    assert scanner.counts == wire.Changes(2, 0, 3, 1)


def test_a_refresh_is_not_scanned_for_counts(job: Job):
    job.play("apply-refresh-only", "Apply complete! Resources: 0 added, 0 changed, 0 destroyed.\n")
    assert "changes" not in job.run("--op=refresh").document


def test_a_failed_apply_reports_what_it_had_counted(job: Job):
    job.play("apply", _message(**{"@message": COUNTED}) + _diagnostic(summary="Late"), exit=1)
    outcome = job.run("--op=apply")
    assert outcome.document["changes"] == {"add": 2, "change": 0, "destroy": 3, "import": 1}
    assert outcome.error["tail"] == "Error: Late"


def _summary(name: str, stderr: bytes = b"", ended: Ended = Ended(1, "", 0.0), **more) -> str:
    return summary.of_step(name, ended, stderr, Redactor(), **more)


def test_a_failed_validation_is_summarised_by_its_diagnostics():
    output = {
        "valid": False,
        "diagnostics": [
            {"severity": "error", "summary": "Unsupported", "detail": "An argument.\nMore of it."},
            {"severity": "warning", "summary": "Old"},
            {"severity": "error", "summary": "Missing", "detail": ""},
        ],
    }
    text = _summary(wire.VALIDATE, validation=json.dumps(output).encode())
    assert text == "Error: Unsupported: An argument.\nError: Missing"


@pytest.mark.parametrize(
    "output", [b"", b"no json", b"[]", b'{"diagnostics":{}}', b'{"diagnostics":[1]}']
)
def test_a_validation_that_printed_no_json_is_summarised_by_its_error_lines(output):
    stderr = (
        "noise\n\x1b[31mError: \x1b[0mBroken module\n\nmore\n"
        "╷\n\x1b[31m│\x1b[0m Error: boxed\n│ \n│   on m.tf line 7:\n╵\nError: Two\n"
    )
    text = _summary(wire.VALIDATE, stderr.encode(), validation=output)
    assert text == "Error: Broken module: more\nError: boxed (m.tf:7)\nError: Two"


def test_without_anything_to_quote_the_step_and_its_exit_are_named():
    text = _summary(wire.INIT, ended=Ended(9, "", 0.0))
    assert "init" in text and "9" in text and "log" in text
    killed = _summary(wire.INIT, ended=Ended(1, "was killed by SIGKILL", 0.0))
    assert "SIGKILL" in killed


def test_diagnostics_of_the_json_messages_win_over_standard_error():
    found = [Diagnostic("error", "From JSON", "why\nthen")]
    assert _summary(wire.APPLY, b"Error: other\n", shown=found) == "Error: From JSON: why"


def test_a_failed_apply_names_its_resources_in_the_result(job: Job):
    job.play("apply", LOG, exit=1)
    outcome = job.run("--op=apply")
    assert outcome.error["resources"] == ["a.b: Failed"]
    assert outcome.error["tail"] == "panic: runtime error\nError: Failed in a.b: first"
    assert "Error: Failed" in outcome.err and "Error: Failed" not in outcome.out
    assert "Warning: Old" in outcome.out
    assert '"@level"' not in outcome.out + outcome.err
    assert '"value": "raw"' not in outcome.out
