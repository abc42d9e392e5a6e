"""The wire between runner and manager: what one side writes, the other reads."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.model import core
from captfctl.model.job_policy import reserved_env
from captfctl.model.ops import Op
from captfctl.terraform.books.result_document import (
    read_result,
    status_drift,
    status_error,
    status_steps,
)
from captfctl.terraform.job.arguments import environment, runner_arguments
from captfctl.terraform.job.build import SOURCE_CONTAINER
from runner import environ, options, run_options, wire
from runner.flags import FlagSet
from runner.result import Result
from tests.support.runs import World

TEXT = st.text(max_size=40) | st.text(max_size=3000)
COUNT = st.integers(0, 2**31)
LISTED = st.lists(st.text(max_size=300), max_size=50).map(tuple)
STEPS = st.builds(
    wire.StepRecord,
    st.sampled_from(sorted(wire.STEPS)),
    st.integers(0, 255),
    st.integers(0, 10**6).map(lambda tenths: tenths / 10),
)
FAILURES = st.builds(
    wire.Failure,
    st.sampled_from(wire.ERROR_KINDS),
    st.none() | st.sampled_from(sorted(wire.STEPS)),
    TEXT,
    LISTED,
)
PLANS = st.builds(wire.Plan, TEXT.map(lambda text: text[:70]), *[COUNT] * 8, LISTED, st.booleans())
DRIFTS = st.builds(wire.Drift, st.booleans(), *[COUNT] * 4, LISTED)
CHANGES = st.builds(wire.Changes, *[COUNT] * 4)


@st.composite
def results(draw: st.DrawFn) -> Result:
    """What a run may have found."""
    result = Result(draw(st.sampled_from(wire.OPS)), draw(TEXT), draw(LISTED)[:3])
    result.providers_mirror = draw(st.booleans())
    result.runtime_version = draw(st.text(max_size=20))
    result.steps = draw(st.lists(STEPS, max_size=12))
    result.error = draw(st.none() | FAILURES)
    result.plan = draw(st.none() | PLANS)
    result.drift = draw(st.none() | DRIFTS)
    result.changes = draw(st.none() | CHANGES)
    return result


def _pod(message: str) -> core.Pod:
    terminated = core.ContainerStateTerminated(exit_code=1, message=message)
    status = core.ContainerStatus(
        name=SOURCE_CONTAINER, state=core.ContainerState(terminated=terminated)
    )
    return core.Pod(status=core.PodStatus(container_statuses=[status]))


def _read(data: bytes) -> wire.RunResult:
    found, problem = read_result(_pod(data.decode()))
    assert found is not None, problem
    return found


def _plain(value: Any) -> Any:
    """As it can be in JSON: no halves of surrogate pairs."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, tuple):
        parts = [_plain(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


@given(results())
def test_what_the_runner_writes_the_manager_reads(result: Result):
    data = result.encode()
    assert len(data) <= wire.RESULT_MAX
    found = _read(data)
    assert wire.decode(wire.encode(found).decode()) == found
    whole = _plain(result.whole())
    if len(wire.encode(whole)) <= wire.RESULT_MAX:
        assert found == whole
    # What is given up to make it fit is never how the run ended.
    assert found.op == result.op
    assert found.error_kind == (result.error.kind if result.error else "")
    if result.plan is not None:
        assert found.plan is not None
        assert found.plan[:9] == _plain(result.plan[:9])
        assert found.plan.truncated or found.plan.resources == _plain(result.plan.resources)
    if result.error is not None and found.error is not None:
        assert _plain(result.error.tail).startswith(found.error.tail)


NEWER = st.dictionaries(
    st.sampled_from(["new", "cause", "x-y", "Version"]),
    st.none() | st.integers() | TEXT | st.lists(st.integers(), max_size=2),
    min_size=1,
    max_size=3,
)


@given(results(), NEWER, st.randoms(use_true_random=False))
def test_members_of_a_newer_runner_are_passed_over(
    result: Result, newer: dict[str, object], chance: random.Random
):
    data = result.encode()
    document = json.loads(data)

    def extended(value: object) -> object:
        if isinstance(value, dict):
            more = newer if chance.random() < 0.7 else {}
            return {**more, **{key: extended(member) for key, member in value.items()}}
        return [extended(item) for item in value] if isinstance(value, list) else value

    assert _read(json.dumps(extended(document)).encode()) == _read(data)


@given(results(), st.data())
def test_a_result_cut_at_the_kubelets_limit_is_told_from_one_that_is_none(
    result: Result, data: st.DataObject
):
    long = wire.encode(result.whole()._replace(image="i" * wire.RESULT_MAX))
    cut_off = long[: wire.RESULT_MAX].decode("utf-8", "replace")
    assert read_result(_pod(cut_off)) == (None, "truncated")
    whole = result.encode()
    shorter = whole[: data.draw(st.integers(1, len(whole) - 1))].decode("utf-8", "replace")
    assert read_result(_pod(shorter[:2000])) == (None, "invalid")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from([10**30, -(10**30), "\ud800", 1e308]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("version", "op", "image", "ref", "runtime", "command", "steps", "name"),
                    *("exit", "seconds", "drift", "detected", "create", "error", "kind", "step"),
                    *("tail", "resources", "changes", "add", "plan", "hash", "truncated"),
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)
HOSTILE = (
    JSON.map(json.dumps)
    | st.dictionaries(
        st.sampled_from(["op", "image", "steps", "drift", "error", "changes", "plan"]), JSON
    ).map(lambda members: json.dumps({**members, "version": 1}))
    | st.text(max_size=60)
    | st.sampled_from(["[" * 4000, '{"version":1,"op":' + "[" * 4000, "1" * 4096, "NaN", "1e999"])
)


@given(HOSTILE)
def test_whatever_a_container_says_is_a_bounded_result_or_none(message: str):
    found, problem = read_result(_pod(message))
    if found is None:
        assert problem in ("missing", "truncated", "invalid")
        return
    wire.encode(found).decode()
    json.dumps([found.op, found.error_kind]).encode()
    for step in status_steps(found):
        assert 0 <= step.duration_milliseconds <= 2 * 10**9
        step.name.encode()
    for shown in (status_error(found), status_drift(found)):
        if shown is not None:
            "".join(shown.resources).encode()


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *[("op", wrong) for wrong in (1, [], {})],
        *[("image", wrong) for wrong in ("x", 1, [], {"ref": 1}, {"providersMirror": "yes"})],
        *[("steps", wrong) for wrong in ("x", {}, [1], [{"exit": 1.5}], [{"exit": True}])],
        *[("error", wrong) for wrong in ("x", [], {"tail": 1}, {"resources": "x"})],
        *[("plan", wrong) for wrong in (1, {"create": "1"}, {"create": 10**30})],
        *[("drift", wrong) for wrong in (True, {"detected": 1}, {"resources": [None]})],
    ],
)
def test_a_known_member_of_a_wrong_type_spoils_the_document(member: str, value: object):
    assert read_result(_pod(json.dumps({"version": 1, member: value}))) == (None, "invalid")


@pytest.mark.parametrize("member", ["op", "image", "runtime", "steps", "drift", "error", "plan"])
def test_null_is_as_good_as_missing(member: str):
    assert wire.decode(json.dumps({"version": 1, member: None})) == wire.RunResult()


def test_operations_have_one_name():
    assert {op.value for op in Op} == set(wire.OPS)


def _parsed(arguments: list[str]) -> run_options.RunOptions:
    accepted = FlagSet(options.GLOBAL_FLAGS, (options.HELP_FLAG,), run_options.RUN_FLAGS)
    values = accepted.defaults()
    assert accepted.parse(arguments, values) == []
    return run_options.run_options(values)


RUNS: dict[str, Callable[[World], Any]] = {
    "plain": lambda world: world.run(),
    "destroy": lambda world: world.run(Op.DESTROY, force_unlock="f00d"),
    "guarded": lambda world: world.run(allow_deletes="a" * 64),
    "approved": lambda world: world.run(expect_plan=wire.EMPTY_PLAN),
    "plan": lambda world: world.run(Op.PLAN),
}


@pytest.mark.parametrize("case", RUNS)
def test_the_runner_understands_the_command_line_of_a_job(case: str):
    run = RUNS[case](World())
    found = _parsed(runner_arguments(run, events=True))
    defaults = _parsed([f"--op={run.op}"])
    paths = ("bin", "module", "providers", "workdir", "config", "plan_key_file", "result")
    assert all(getattr(found, name) == getattr(defaults, name) for name in paths)
    assert (found.op, found.image, found.job_name) == (run.op, run.image, run.name)
    assert found.event_object == run.owner.event_target
    assert found.force_unlock == run.force_unlock
    assert found.guard_deletes is run.guarded
    assert (found.allow_deletes_hash, found.expect_plan) == (run.allow_deletes, run.expect_plan)
    assert found.inputs_hash == (run.inputs_hash if run.guarded else "")
    assert len(found.backend_config) == 4
    assert found.lock_timeout == 300 * 10**9


def test_the_runner_drops_nothing_of_the_environment_a_job_sets():
    variables = {entry.name: entry.value for entry in environment(World().run())}
    assert all(reserved_env(name) for name in variables)
    assert environ.dropped(variables) == ()
    built = environ.build(variables, wire.WORK, "")
    assert built == {**variables, "TF_DATA_DIR": f"{wire.WORK}/.terraform"}
