"""The flags of `run` and their typed values (runner.md: Flags of run)."""

import os
from typing import NamedTuple

from runner import flags, wire
from runner.durations import SECOND
from runner.flags import Value, Values


class RunOptions(NamedTuple):
    """The flags of `run`. Durations are nanoseconds; paths are absolute."""

    op: str
    bin: tuple[str, ...]
    image: str
    module: str
    providers: str
    workdir: str
    config: str
    backend_config: tuple[str, ...]
    lock_timeout: int
    stop_timeout: int
    force_unlock: str
    guard_deletes: bool
    inputs_hash: str
    allow_deletes_hash: str
    expect_plan: str
    plan_key_file: str
    restore_chunks: int
    restore_resources: int
    unsaved_chunks: int
    event_object: str
    job_name: str
    result: str


RUN_FLAGS = (
    flags.text("op", "", "The operation: " + ", ".join(wire.OPS) + ". Required"),
    flags.texts("bin", [wire.RUNTIME], "The runtime command, one flag per element"),
    flags.text("image", "", "Source image reference, echoed in the result"),
    flags.text("module", wire.MODULE, "Module directory"),
    flags.text("providers", wire.PROVIDERS, "Provider mirror directory; may be absent"),
    flags.text("workdir", wire.WORK, "Writable work directory"),
    flags.text("config", wire.CONFIG, "Directory with the rendered root module and tfvars"),
    flags.texts("backend-config", [], "A value for init -backend-config; repeatable"),
    flags.duration("lock-timeout", 300 * SECOND, "How long a step waits for the state lock"),
    flags.duration("stop-timeout", 60 * SECOND, "How long an interrupted step has before SIGKILL"),
    flags.text("force-unlock", "", "A stale lock ID to force-unlock after init"),
    flags.switch("guard-deletes", "apply: stop before a plan that deletes or replaces"),
    flags.text("inputs-hash", "", "Hash of the inputs this Job renders"),
    flags.text("allow-deletes-hash", "", "Hash approved for a destructive plan"),
    flags.text("expect-plan", "", "apply: the approved plan hash"),
    flags.text("plan-key-file", wire.PLAN_KEY_FILE, "File with the key of plan fingerprints"),
    flags.number("restore-chunks", "restore: number of backup chunks under <config>/restore"),
    flags.number("restore-resources", "restore: managed resources in the backup"),
    flags.number(
        "unsaved-chunks", "number of chunks under <config>/unsaved of a state to store first"
    ),
    flags.text(
        "event-object",
        "",
        "Object of progress events: <apiVersion>/<kind>/<namespace>/<name>/<uid>",
    ),
    flags.text("job-name", "", "The Job the events relate to"),
    flags.text("result", wire.RESULT_FILE, "Where to write the result"),
)


def run_options(values: Values) -> RunOptions:
    """The typed options of `run`; relative paths are made absolute, the steps run elsewhere."""
    return RunOptions(
        op=_text(values, "op"),
        bin=_texts(values, "bin"),
        image=_text(values, "image"),
        module=_path(values, "module"),
        providers=_path(values, "providers"),
        workdir=_path(values, "workdir"),
        config=_path(values, "config"),
        backend_config=_texts(values, "backend-config"),
        lock_timeout=_integer(values, "lock-timeout"),
        stop_timeout=_integer(values, "stop-timeout"),
        force_unlock=_text(values, "force-unlock"),
        guard_deletes=values["guard-deletes"] is True,
        inputs_hash=_text(values, "inputs-hash"),
        allow_deletes_hash=_text(values, "allow-deletes-hash"),
        expect_plan=_text(values, "expect-plan"),
        plan_key_file=_path(values, "plan-key-file"),
        restore_chunks=_integer(values, "restore-chunks"),
        restore_resources=_integer(values, "restore-resources"),
        unsaved_chunks=_integer(values, "unsaved-chunks"),
        event_object=_text(values, "event-object"),
        job_name=_text(values, "job-name"),
        result=result_path(values),
    )


def result_path(values: Values) -> str:
    """Where the result goes, also when the flags turned out bad: never an empty path."""
    return _path(values, "result") or wire.RESULT_FILE


def _path(values: Values, name: str) -> str:
    """An absolute path; an empty value stays empty."""
    path = _text(values, name)
    return path if not path or os.path.isabs(path) else os.path.join(os.getcwd(), path)


def _text(values: Values, name: str) -> str:
    value = values[name]
    assert isinstance(value, str)
    return value


def _integer(values: Values, name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value


def _texts(values: Values, name: str) -> tuple[str, ...]:
    value: Value = values[name]
    assert isinstance(value, list)
    return tuple(value)
