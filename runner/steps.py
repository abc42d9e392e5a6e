"""The steps of every operation and their exact arguments (runner.md: Steps)."""

from typing import NamedTuple

from runner import durations, wire
from runner.run_options import RunOptions
from runner.workdir import Workdir

_VAR_FILE = f"-var-file={wire.VARIABLES_FILE}"  # relative to the root module


class Step(NamedTuple):
    """One command of the runtime.

    `arguments` follow the runtime command; `ok` are the exit codes that are no failure; `capture`
    keeps standard output for the runner; `log` copies it to the runner's standard output; `json_ui`
    renders it first (runner.md: Rendering JSON messages); `after_changes` runs the step only when
    the step before it exited with 2.
    """

    name: str
    arguments: tuple[str, ...]
    ok: tuple[int, ...] = (0,)
    capture: bool = False
    log: bool = True
    json_ui: bool = False
    after_changes: bool = False


VERSION = Step("version", ("version", "-json"), capture=True, log=False)


def planned(options: RunOptions) -> bool:
    """Whether an apply is planned first and applies the saved plan."""
    return options.op == wire.APPLY and bool(options.guard_deletes or options.expect_plan)


def for_operation(options: RunOptions, workdir: Workdir) -> list[Step]:
    """The steps of the operation, in order. Raises KeyError for an unknown operation."""
    common = _common(options)
    own = {
        wire.APPLY: _planned_apply if planned(options) else _direct_apply,
        wire.PLAN: _plan,
        wire.DESTROY: _destroy,
        wire.REFRESH: _refresh,
        wire.DRIFT: _drift,
        wire.RESTORE: _restore,
    }[options.op](options, workdir, common)
    backend = tuple(f"-backend-config={value}" for value in options.backend_config)
    first = [Step(wire.INIT, ("init", *common, *backend))]
    if options.force_unlock:
        first.append(force_unlock(options.force_unlock))
    if recovers(options):
        push = ("state", "push", _lock_timeout(options), workdir.unsaved_state)
        first.append(Step(wire.STATE_RECOVER, push))
    return first + own


def recovers(options: RunOptions) -> bool:
    """Whether a state that an earlier run could not store is stored first. A restore replaces it:
    somebody decided so."""
    return bool(options.unsaved_chunks) and options.op != wire.RESTORE


def force_unlock(lock: str) -> Step:
    """Take off a lock."""
    return Step(wire.FORCE_UNLOCK, ("force-unlock", "-force", lock))


def push_errored_state(options: RunOptions, file: str, *, waits: bool) -> Step:
    """Store the state the runtime could not store itself, from a file or, as `-`, from standard
    input (runner.md: A state that could not be stored). `waits`: for a lock that is held."""
    timeout = _lock_timeout(options) if waits else "-lock-timeout=0s"
    return Step(wire.STATE_PUSH, ("state", "push", timeout, file))


def _lock_timeout(options: RunOptions) -> str:
    return f"-lock-timeout={durations.whole_seconds(options.lock_timeout)}s"


def _common(options: RunOptions) -> tuple[str, ...]:
    return ("-input=false", "-no-color", _lock_timeout(options))


def _validate() -> Step:
    return Step(wire.VALIDATE, ("validate", "-json", "-no-color"), capture=True)


def _planning(common: tuple[str, ...], plan_file: str, *extra: str) -> list[Step]:
    """Plan into a file, and read the file when the plan holds changes."""
    arguments = ("plan", *common, "-detailed-exitcode", *extra, _VAR_FILE, f"-out={plan_file}")
    show = ("show", "-json", "-no-color", plan_file)
    return [
        Step(wire.PLAN, arguments, ok=(0, 2)),
        Step(wire.SHOW_JSON, show, capture=True, log=False, after_changes=True),
    ]


def _direct_apply(_: RunOptions, __: Workdir, common: tuple[str, ...]) -> list[Step]:
    arguments = ("apply", *common, "-json", "-auto-approve", _VAR_FILE)
    return [_validate(), Step(wire.APPLY, arguments, json_ui=True)]


def _planned_apply(_: RunOptions, workdir: Workdir, common: tuple[str, ...]) -> list[Step]:
    # A saved plan carries its variables and asks for no approval.
    arguments = ("apply", *common, "-json", workdir.apply_plan)
    return [
        _validate(),
        *_planning(common, workdir.apply_plan),
        Step(wire.APPLY, arguments, json_ui=True),
    ]


def _plan(_: RunOptions, workdir: Workdir, common: tuple[str, ...]) -> list[Step]:
    return [_validate(), *_planning(common, workdir.review_plan)]


def _destroy(_: RunOptions, __: Workdir, common: tuple[str, ...]) -> list[Step]:
    arguments = ("destroy", *common, "-json", "-auto-approve", _VAR_FILE)
    return [Step(wire.DESTROY, arguments, json_ui=True)]


def _refresh(_: RunOptions, __: Workdir, common: tuple[str, ...]) -> list[Step]:
    arguments = ("apply", *common, "-refresh-only", "-auto-approve", _VAR_FILE)
    return [Step(wire.REFRESH_ONLY, arguments)]


def _drift(options: RunOptions, workdir: Workdir, common: tuple[str, ...]) -> list[Step]:
    refresh = _refresh(options, workdir, common)
    return refresh + _planning(common, workdir.review_plan, "-refresh=false")


def _restore(options: RunOptions, workdir: Workdir, _: tuple[str, ...]) -> list[Step]:
    # Forced: a backup's serial is older than the state's, or its lineage is another one.
    push = ("state", "push", "-force", _lock_timeout(options), workdir.restore_state)
    return [Step(wire.STATE_PUSH, push), Step(wire.STATE_LIST, ("state", "list"), capture=True)]
