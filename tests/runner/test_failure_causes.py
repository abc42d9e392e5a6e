"""Why a run failed, told in one line that reaches the object: with file and line, the wanted
version, or the line a crash began with.
"""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.terraform.books.apply_condition import cause
from captfctl.terraform.books.result_document import status_error
from runner import diagnostics, wire
from runner.redact import Redactor, SecretSet
from runner.streams import TAIL_BYTES, Discarded, Logged, Tail
from tests.books.test_bookkeeping import keep
from tests.runner.harness import Job
from tests.runner.scenarios import SECRET
from tests.runner.test_real_runtime import RUNTIMES, Site
from tests.support.runs import World

DECLARED = 'variable "secret" { type = string }\noutput "endpoint" { value = "none" }\n'

# A module, the step that fails, and what the cause has to hold, in this order.
CASES = {
    "a syntax error": (
        'resource "terraform_data" "x" {\n  input =\n}\n',
        "init",
        ["Invalid expression", "(module/broken.tf:2)", "Expected the start of an expression"],
    ),
    "a version of the runtime that is not the wanted one": (
        'terraform {\n  required_version = ">= 99.1"\n}\n',
        "init",
        ["Core version", ">= 99.1", "(module/broken.tf:2)", "does not support"],
    ),
    "a variable that nobody sets": (
        'variable "region" {}\n',
        "validate",
        ["Missing required argument", "(the run's main.tf.json:", '"region" is required'],
    ),
    "an argument that there is not": (
        'resource "terraform_data" "x" {\n  no_such = 1\n}\n',
        "validate",
        ["Unsupported argument", "(module/broken.tf:2)", "no_such"],
    ),
    "a provider that cannot be had": (
        'terraform {\n  required_providers {\n    x = { source = "example.com/none/x" }\n  }\n}\n',
        "init",
        ["Failed to query available provider packages", "example.com/none/x"],
    ),
    "a precondition that does not hold": (
        'resource "terraform_data" "x" {\n  lifecycle {\n    precondition {\n'
        '      condition     = var.secret == "other"\n'
        '      error_message = "It is not\\nthe other one."\n    }\n  }\n}\n',
        "apply",
        ["Resource precondition failed", "(module/broken.tf:4)", "It is not"],
    ),
    "a provider that refuses": (
        'data "terraform_remote_state" "x" {\n  backend = "local"\n'
        '  config  = { path = "/nonexistent" }\n}\n',
        "apply",
        [
            "Unable to find remote state",
            "in module.role.data.terraform_remote_state.x",
            "(module/broken.tf:",
            "No stored state was found",
        ],
    ),
    "a command that fails, with a secret in it": (
        'resource "terraform_data" "x" {\n  provisioner "local-exec" {\n'
        '    command = "echo ${nonsensitive(var.secret)}; exit 7"\n  }\n}\n',
        "apply",
        [
            "local-exec provisioner error",
            "in module.role.terraform_data.x",
            "(module/broken.tf:2)",
            "(sensitive)",
            "exit status 7",
        ],
    ),
}
PLANNED = ("a precondition that does not hold", "a provider that refuses")


@pytest.fixture(params=RUNTIMES)
def site(job: Job, request: pytest.FixtureRequest) -> Site:
    (job.path / "providers").mkdir()  # providers come from here only: no network is asked
    return Site(job, request.param)


def _broken(site: Site, module: str) -> None:
    site.module(DECLARED.replace("{ type = string }", "{\n  type = string\n  sensitive = true\n}"))
    (site.job.module / "broken.tf").write_text(module)


def _in_order(parts: list[str], text: str) -> bool:
    place = 0
    for part in parts:
        place = text.find(part, place) + len(part)
        if part not in text[: place + 1] or place < len(part):
            return False
    return True


@pytest.mark.terraform
@pytest.mark.parametrize(
    ("op", "case"),
    # Only an apply runs commands; what fails in init or validate fails alike in both.
    [*(("apply", case) for case in CASES), *(("plan", case) for case in PLANNED)],
)
def test_the_first_error_reaches_the_condition_and_the_status(site: Site, case: str, op: str):
    module, step, parts = CASES[case]
    _broken(site, module)
    outcome = site.run(f"--op={op}")
    assert outcome.error["kind"] == "step"
    assert outcome.error["step"] == (op if step == "apply" else step)
    result = wire.decode(json.dumps(outcome.result))
    assert result.error is not None
    told = cause(result.error)
    assert _in_order(parts, told), told
    shown = status_error(result)
    assert shown is not None and told in shown.summary
    world = World()
    job = world.finished(ok=False, result=outcome.document)
    message = keep(world).apply_condition.message
    assert message == f"Job {job.metadata.name}: step {outcome.error['step']} failed: {told}"
    assert SECRET not in message


@pytest.mark.parametrize("case", ["an argument that there is not", "a variable that nobody sets"])
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.terraform
def test_an_error_printed_as_text_reads_like_the_same_error_in_json(
    case: str, runtime: str, tmp_path: Path
):
    module, root = tmp_path / "module", tmp_path / "work" / "root"
    for directory in (module, root):
        directory.mkdir(parents=True)
    detail = "x" * 70 + " and long words that are broken into lines " * 3
    (module / "main.tf").write_text(CASES[case][0] + f'variable "n" {{ description = "{detail}" }}')
    call = {"module": {"role": {"source": "../../module", "n": 1}}}
    (root / "main.tf.json").write_text(json.dumps(call))
    environ = {"PATH": "/usr/bin:/bin:/usr/local/bin", "CHECKPOINT_DISABLE": "1"}

    def call_runtime(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [runtime, *arguments], cwd=root, env=environ, capture_output=True, check=False
        )

    assert call_runtime("init", "-no-color").returncode == 0
    in_json = diagnostics.of_validation(call_runtime("validate", "-json").stdout)
    in_text = diagnostics.of_text(call_runtime("validate", "-no-color").stderr.decode())
    assert in_json
    for one, other in zip(in_json, in_text, strict=True):
        assert one.headline() == other.headline()
        assert (one.file, one.line, one.context) == (other.file, other.line, other.context)


STACK = b"\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:12 +0x1d\n" * 4000


@pytest.mark.parametrize("op", ["apply", "refresh"])
@pytest.mark.parametrize(
    ("err", "told"),
    [
        (b"!!! TERRAFORM CRASH !!!\npanic: boom\n" + STACK, "panic: boom"),
        (
            b"Stack trace from the terraform-provider-x_v1 plugin:\n\npanic: assignment to entry "
            b"in nil map\n" + STACK + b"\nError: The terraform-provider-x_v1 plugin crashed!\n\n"
            b"This is always indicative of a bug within the plugin.\n",
            "panic: assignment to entry in nil map",
        ),
        (b"fatal error: concurrent map writes\n" + STACK, "fatal error: concurrent map writes"),
        (b"panic: over with " + SECRET.encode(), "panic: over with (sensitive)"),
    ],
)
def test_a_crash_is_told_by_the_line_it_began_with(job: Job, op: str, err: bytes, told: str):
    secret = {"variable": {"secret": {"sensitive": True}}}
    (job.config / "main.tf.json").write_text(json.dumps(secret))
    (job.config / "terraform.tfvars.json").write_text(json.dumps({"secret": SECRET}))
    name = {"apply": "apply", "refresh": "apply-refresh-only"}[op]
    job.play(name, b"plain text on standard output\n", err=err, exit=2)
    outcome = job.run(f"--op={op}")
    assert outcome.exit == 2
    assert outcome.error["tail"].splitlines()[0] == told
    assert len(outcome.error["tail"].encode()) <= 512
    world = World()
    world.finished(ok=False, result=outcome.document)
    assert keep(world).apply_condition.message.endswith(f": step {name} failed: {told}")


@given(
    st.binary(max_size=200).filter(lambda data: b"panic: " not in data),
    st.integers(0, 3 * TAIL_BYTES),
    st.integers(1, 40),
)
def test_a_crash_is_found_however_its_output_is_cut_into_pieces(
    before: bytes, after: int, pieces: int
):
    tail = Tail(Logged(Redactor(SecretSet()), _Nowhere()))
    data = before + b"\npanic: index out of range\n" + b"goroutine 7\n" * (after // 12)
    size = max(1, len(data) // pieces)
    for start in range(0, len(data), size):
        tail.feed(data[start : start + size])
    tail.close()
    assert tail.crash == b"panic: index out of range"
    assert data.endswith(tail.last())


def test_words_about_a_crash_are_none():
    tail = Tail(Logged(Redactor(SecretSet()), _Nowhere()))
    tail.feed(b"Error: the node said: panic: no\n  panic: indented\nno fatal error: here\n")
    tail.close()
    assert tail.crash == b""


class _Nowhere(Discarded):
    """A sink that loses everything."""

    def write(self, data: bytes) -> None:
        """Lose it."""


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300)


@given(WORDS, WORDS, WORDS, WORDS, st.integers(), WORDS)
def test_a_headline_is_one_line_whatever_the_runtime_says(
    summary: str, detail: str, address: str, file: str, line: int, code: str
):
    found = diagnostics.Diagnostic("error", summary, detail, address, "", file, line, code)
    assert len(found.headline().splitlines()) <= 1
    diagnostics.of_text(f"Error: {summary}\n{detail}\n{code}")
