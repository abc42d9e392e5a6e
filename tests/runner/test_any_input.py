"""No bytes from outside lead to a traceback or to a result that cannot be read."""

import gzip
import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from runner import cli, jsontext, plan
from runner.jsontext import JsonError
from runner.signals import Cancellation
from tests.runner.harness import PLAN_KEY, Job, Outcome

# Each example runs the runner and its fake runtime from end to end.
FEW = settings(max_examples=12)

FRAGMENTS = st.sampled_from(
    [
        *(
            b"{",
            b"}",
            b"[",
            b"]",
            b'"',
            b":",
            b",",
            b"null",
            b"true",
            b"1e999",
            b"-",
            b"\\u",
            b"\\",
        ),
        *(
            b'"resource_changes"',
            b'"change"',
            b'"actions"',
            b'"address"',
            b'"before"',
            b"\xff",
            b" ",
        ),
    ]
)
BYTES = st.binary(max_size=200) | st.lists(FRAGMENTS, max_size=40).map(b"".join)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["actions", "before", "after", "after_unknown", "address", "change", "x"]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
PLANS = st.fixed_dictionaries(
    {},
    optional={
        "resource_changes": VALUE | st.lists(VALUE, max_size=3),
        "output_changes": VALUE,
        "prior_state": VALUE,
    },
)


def _job() -> tuple[tempfile.TemporaryDirectory, Job]:
    directory = tempfile.TemporaryDirectory(prefix="captf-any-")
    return directory, Job(Path(directory.name))


def _readable(outcome: Outcome) -> None:
    assert outcome.exit in (0, 1, 2)
    assert outcome.document["version"] == 1
    assert "Traceback" not in outcome.err
    assert "internal error" not in outcome.everything


@given(BYTES | PLANS.map(lambda document: json.dumps(document).encode()))
def test_any_bytes_as_a_plan_are_read_or_refused(data):
    try:
        reading = plan.read([data], PLAN_KEY)
    except JsonError:
        return
    assert reading.summary.hash.startswith("p2:")
    assert json.loads(json.dumps(reading.summary))


@given(st.integers(1, 300_000), st.sampled_from([(b"[", b"]"), (b'{"a":', b"}")]))
def test_any_depth_is_read_or_refused(depth, brackets):
    opening, closing = brackets
    nested = opening * depth + b"1" + closing * depth
    document = b'{"resource_changes":[{"address":"a","change":{"actions":["update"],"after":'
    try:
        plan.read([document + nested + b',"after_sensitive":' + nested + b"}}]}"], PLAN_KEY)
    except (JsonError, RecursionError):
        return


@given(BYTES)
def test_any_bytes_are_checked_as_json_as_the_library_does(data):
    text = jsontext.as_ascii([data])
    try:
        jsontext.check(text)
        ours = True
    except JsonError:
        ours = False
    try:
        json.loads(text, parse_constant=jsontext._refuse)
        theirs = True
    except ValueError:
        theirs = False
    assert ours == theirs


@FEW
@given(BYTES, st.sampled_from(["--op=plan", "--op=drift", "--op=apply"]))
def test_any_bytes_from_show_leave_a_readable_result(data, op):
    directory, job = _job()
    with directory:
        job.play("plan", exit=2)
        job.play("show", data)
        _readable(job.run(op, "--guard-deletes"))


@FEW
@given(BYTES, BYTES)
def test_any_bytes_as_inputs_leave_a_readable_result(values, root):
    directory, job = _job()
    with directory:
        (job.config / "terraform.tfvars.json").write_bytes(values)
        (job.config / "main.tf.json").write_bytes(root)
        _readable(job.run("--op=apply"))


@FEW
@given(BYTES, st.booleans())
def test_any_bytes_as_a_restore_chunk_leave_a_readable_result(data, packed):
    directory, job = _job()
    with directory:
        (job.config / "restore").mkdir()
        (job.config / "restore" / "0").write_bytes(gzip.compress(data) if packed else data)
        _readable(job.run("--op=restore", "--restore-chunks=1"))


@FEW
@given(BYTES, BYTES, st.integers(0, 3))
def test_any_output_of_any_step_leaves_a_readable_result(out, err, exit_code):
    directory, job = _job()
    with directory:
        for name in ("version", "init", "validate", "apply"):
            job.play(name, out, err=err, exit=exit_code if name == "apply" else 0)
        outcome = job.run("--op=apply")
        assert outcome.document["version"] == 1
        assert "Traceback" not in outcome.err
        assert outcome.exit == exit_code


ARGUMENT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


@FEW
@given(ARGUMENT)
def test_any_event_object_leaves_a_readable_result(text):
    directory, job = _job()
    with directory:
        environ = {**job.environ, "KUBERNETES_SERVICE_HOST": "127.0.0.1"}
        _readable(job.run("--op=refresh", f"--event-object={text}", environ=environ))


FLAGS = st.lists(
    ARGUMENT
    | st.sampled_from(["--op=apply", "--op", "--", "-v", "--lock-timeout=1s", "--bin=x", "-h"])
    | st.builds(
        "--{}={}".format, st.sampled_from(["op", "v", "restore-chunks", "vmodule"]), ARGUMENT
    ),
    max_size=8,
)


@given(FLAGS)
def test_any_flag_list_is_answered_with_a_result_or_its_help(arguments):
    directory, job = _job()
    with directory:
        given_paths = [flag for flag in job.flags()[1:] if not flag.startswith("--bin")]
        outcome = job.run_arguments(
            ["run", *given_paths, "--module=/nonexistent", *arguments, f"--result={job.result}"]
        )
        assert outcome.exit in (0, 1, 2)
        assert "Traceback" not in outcome.err
        assert "internal error" not in outcome.everything
        helped = outcome.exit == 0
        assert helped or outcome.result is not None or outcome.exit == 2


@given(FLAGS)
def test_any_command_line_is_answered(arguments):
    directory, job = _job()
    with directory, (job.path / "out").open("wb") as out:
        console = cli.Console(out.fileno(), out.fileno())
        if "run" in arguments:
            return
        assert cli.main(arguments, {}, Cancellation(), console) in (0, 1, 2)
