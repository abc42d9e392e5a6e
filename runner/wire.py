"""What the runner and the manager have to agree on: both take it from here.

The manager (captfctl) starts a runner with flags, mounts and files, and reads the small JSON
document the runner leaves. A runner and a manager of different versions meet, so a document is
read leniently: members that are not known are passed over, missing ones have their zero value. It
comes out of a container that runs somebody else's image, so whatever it says is typed and bounded
here before anything else sees it.

This module imports the standard library only, and as little of it as the runner loads anyway.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")

# Operations.
APPLY = "apply"
DESTROY = "destroy"
REFRESH = "refresh"
DRIFT = "drift"
RESTORE = "restore"
PLAN = "plan"
OPS = (APPLY, DESTROY, REFRESH, DRIFT, RESTORE, PLAN)

# Steps. Those named as an operation have its name.
INIT = "init"
FORCE_UNLOCK = "force-unlock"
VALIDATE = "validate"
REFRESH_ONLY = "apply-refresh-only"
SHOW_JSON = "show-json"
STATE_PUSH = "state-push"
STATE_LIST = "state-list"
STATE_RECOVER = "state-recover"  # the push of a state that an earlier run could not store
PREPARE = "prepare"  # what comes before the first command; also the step of a bad flag:
FLAGS = "flags"
STEPS = frozenset(
    (
        *(INIT, FORCE_UNLOCK, VALIDATE, PLAN, SHOW_JSON, APPLY, REFRESH_ONLY, DESTROY),
        *(STATE_PUSH, STATE_LIST, STATE_RECOVER, PREPARE),
    )
)

# Kinds of error.
LAYOUT = "image-layout"
STEP = "step"
INTERRUPTED = "interrupted"
BLOCKED = "blocked"
PLAN_CHANGED = "plan-changed"
ERROR_KINDS = (LAYOUT, STEP, INTERRUPTED, BLOCKED, PLAN_CHANGED)

# Of fingerprints of plans made by these rules: those made by others never match.
PLAN_HASH_PREFIX = "p2:"
# The fingerprint of a plan without any change: the hash of no lines.
EMPTY_PLAN = PLAN_HASH_PREFIX + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
PLAN_KEY_BYTES = 32

# Where things are in the container.
RUNNER_FILE = "/captf/bin/runner"
RUNTIME = "/captf/runtime"
MODULE = "/captf/module"
PROVIDERS = "/captf/providers"
WORK = "/captf/work"
CONFIG = "/captf/config"
PLAN_KEY_DIRECTORY = "/captf/plan-key"
PLAN_KEY_NAME = "key"
PLAN_KEY_FILE = f"{PLAN_KEY_DIRECTORY}/{PLAN_KEY_NAME}"
RESULT_FILE = "/dev/termination-log"
MODULE_SUFFIXES = (".tf", ".tf.json", ".tofu", ".tofu.json")
# The flags that name them, with their defaults.
PATH_FLAGS = {
    "bin": RUNTIME,
    "module": MODULE,
    "providers": PROVIDERS,
    "workdir": WORK,
    "config": CONFIG,
    "plan-key-file": PLAN_KEY_FILE,
}

# Files below CONFIG. The chunks of a backup are below RESTORE_DIRECTORY, named 0, 1, …
MAIN_FILE = "main.tf.json"
VARIABLES_FILE = "terraform.tfvars.json"
ERRORED_STATE = "root/errored.tfstate"  # below WORK: what the runtime could not store
RESTORE_DIRECTORY = "restore"
UNSAVED_DIRECTORY = "unsaved"  # a state that an earlier run could not store
MOST_CHUNKS = 32
BOOTSTRAP_DATA = "bootstrap_data"  # the variable whose value is secret, declared so or not

# The Secrets that keep a state that a run could not store (runner/kept.py).
KEPT_LABEL = "captf.io/unsaved-state"  # its value is the suffix of the state's names
KEPT_KEY = "tfstate"
KEPT_JOB = "captf.io/job"
KEPT_PARTS = "captf.io/unsaved-parts"
KEPT_SERIAL = "captf.io/unsaved-serial"
KEPT_LINEAGE = "captf.io/unsaved-lineage"
KEPT_RESOURCES = "captf.io/unsaved-resources"


def kept_secret(suffix: str, part: int = 0) -> str:
    """The name of a Secret that keeps an unsaved state; part 0 is the base."""
    base = f"captf-unsaved-{suffix}"
    return f"{base}-part-{part}" if part else base


# A process without a mount namespace of its own finds the service account where this says.
SERVICE_ACCOUNT_VARIABLE = "CAPTF_SERVICE_ACCOUNT_DIR"

# The result document.
RESULT_VERSION = 1
RESULT_MAX = 4096  # bytes: what a kubelet keeps of a termination message
_INTEGER_MAX = 2**53
_SECONDS_MAX = 1e9


class StepRecord(NamedTuple):
    """One step that was run: its name, exit code and wall time in seconds (one decimal)."""

    name: str = ""
    exit: int = 0
    seconds: float = 0.0


class Failure(NamedTuple):
    """Why a run failed.

    `step` is None when no step is to blame. `tail` is a summary made for people, the most
    important line first; `resources` are `<address>: <summary>` of those that failed.
    """

    kind: str = ""
    step: str | None = None
    tail: str = ""
    resources: tuple[str, ...] = ()


class Changes(NamedTuple):
    """What an apply or a destroy says it did."""

    add: int = 0
    change: int = 0
    destroy: int = 0
    imported: int = 0


class Drift(NamedTuple):
    """What differs between the state and the configuration.

    `resources` are the first addresses; None when the list did not fit.
    """

    detected: bool = False
    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    resources: tuple[str, ...] | None = None

    @property
    def counts(self) -> str:
        """The counts in words."""
        return _action_counts(self.create, self.update, self.replace, self.delete)


class Plan(NamedTuple):
    """A plan without its values. `hash` is empty when the plan was not fingerprinted."""

    hash: str = ""
    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    output_changes: int = 0
    imported: int = 0
    move: int = 0
    forget: int = 0
    resources: tuple[str, ...] = ()
    truncated: bool = False

    @property
    def action_counts(self) -> str:
        """The counts of the four actions in words."""
        return _action_counts(self.create, self.update, self.replace, self.delete)

    @property
    def counts(self) -> str:
        """The same, and the other counts when there are any."""
        rare = (
            (self.imported, "to import"),
            (self.move, "to move"),
            (self.forget, "to forget"),
            (self.output_changes, "outputs changed"),
        )
        return self.action_counts + "".join(f", {count} {what}" for count, what in rare if count)


class Unsaved(NamedTuple):
    """A state that the run made and could not store.

    `secrets` is in how many Secrets it is kept; 0: in none.
    """

    serial: int = 0
    lineage: str = ""
    resources: int = 0
    secrets: int = 0


class RunResult(NamedTuple):
    """One run's result. `command` is that of the runtime; a version that is unknown is empty."""

    op: str = ""
    image: str = ""
    providers_mirror: bool = False
    command: tuple[str, ...] = ()
    runtime_version: str = ""
    steps: tuple[StepRecord, ...] = ()
    drift: Drift | None = None
    error: Failure | None = None
    changes: Changes | None = None
    plan: Plan | None = None
    unsaved: Unsaved | None = None

    @property
    def error_kind(self) -> str:
        """One of `ERROR_KINDS`, `unknown` for any other, empty without an error."""
        if self.error is None:
            return ""
        return self.error.kind if self.error.kind in ERROR_KINDS else "unknown"

    def has_step(self, name: str) -> bool:
        """Whether the step began."""
        return any(step.name == name for step in self.steps)

    def did_step(self, name: str) -> bool:
        """Whether the step was run and ended with 0."""
        return any(step.name == name and step.exit == 0 for step in self.steps)


def _action_counts(create: int, update: int, replace: int, delete: int) -> str:
    return f"{create} to create, {update} to update, {replace} to replace, {delete} to delete"


# Members whose JSON name is not the field's.
_JSON_NAMES = {"output_changes": "outputChanges", "imported": "import"}


def encode(result: RunResult) -> bytes:
    """The document as UTF-8; what cannot be encoded is replaced."""
    document: dict[str, object] = {
        "version": RESULT_VERSION,
        "op": result.op,
        "image": {"ref": result.image, "providersMirror": result.providers_mirror},
        "runtime": {"command": result.command, "version": result.runtime_version},
        "steps": [step._asdict() for step in result.steps],
        "drift": None,
        "error": None,
    }
    if result.drift is not None:
        document["drift"] = result.drift._asdict()
    if result.error is not None:
        document["error"] = _members(result.error, ("kind", "step", "tail"))
    if result.changes is not None:
        document["changes"] = _members(result.changes, ("add", "change", "destroy"))
    if result.plan is not None:
        document["plan"] = _members(result.plan, ("hash", "create", "update", "delete"))
    if result.unsaved is not None:
        document["unsaved"] = result.unsaved._asdict()
    import json  # not every command of the runner needs it

    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _members(part: Failure | Changes | Plan, always: tuple[str, ...]) -> dict[str, object]:
    """The members of a part; those not in `always` are left out when they are zero."""
    return {
        _JSON_NAMES.get(name, name): value
        for name, value in part._asdict().items()
        if value or name in always
    }


class NoResult(ValueError):
    """A text is no result document; `truncated`: because it was cut off on its way."""

    def __init__(self, why: str, *, truncated: bool = False) -> None:
        super().__init__(why)
        self.truncated = truncated


def decode(text: str) -> RunResult:
    """Read a document. Raises NoResult."""
    import json

    try:
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        long = len(text.encode("utf-8", "replace")) >= RESULT_MAX
        raise NoResult("not JSON", truncated=long) from None
    read = _Reader(document, "the result")
    if read.integer("version") != RESULT_VERSION:
        raise NoResult("a result of another version")
    image, runtime = read.part("image"), read.part("runtime")
    return RunResult(
        op=read.text("op"),
        image=image.text("ref") if image else "",
        providers_mirror=image.flag("providersMirror") if image else False,
        command=runtime.texts("command") or () if runtime else (),
        runtime_version=runtime.text("version") if runtime else "",
        steps=tuple(_step(part) for part in read.parts("steps")),
        drift=_optional(read.part("drift"), _drift),
        error=_optional(read.part("error"), _failure),
        changes=_optional(read.part("changes"), _changes),
        plan=_optional(read.part("plan"), _plan),
        unsaved=_optional(read.part("unsaved"), _unsaved),
    )


class _Reader:
    """The members of one JSON object, typed. Null is as good as missing."""

    def __init__(self, value: object, what: str) -> None:
        if not isinstance(value, dict):
            raise NoResult(f"{what} is not an object")
        self._members: dict[str, object] = value

    def text(self, name: str) -> str:
        value = self._members.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise NoResult(f"{name} is not a text")
        return _whole(value)

    def texts(self, name: str) -> tuple[str, ...] | None:
        """None when the member is missing."""
        value = self._members.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise NoResult(f"{name} is not a list of texts")
        return tuple(_whole(item) for item in value)

    def integer(self, name: str) -> int:
        value = self._members.get(name)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _INTEGER_MAX:
            raise NoResult(f"{name} is not an integer of this size")
        return value

    def number(self, name: str) -> float:
        """Between 0 and the largest that is told."""
        value = self._members.get(name)
        if value is None:
            return 0.0
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NoResult(f"{name} is not a number")
        return float(min(max(value, 0), _SECONDS_MAX))

    def flag(self, name: str) -> bool:
        value = self._members.get(name)
        if value is not None and not isinstance(value, bool):
            raise NoResult(f"{name} is neither true nor false")
        return bool(value)

    def part(self, name: str) -> "_Reader | None":
        value = self._members.get(name)
        return None if value is None else _Reader(value, name)

    def parts(self, name: str) -> list["_Reader"]:
        value = self._members.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise NoResult(f"{name} is not a list")
        return [_Reader(item, name) for item in value]


def _optional(part: _Reader | None, read: Callable[[_Reader], T]) -> T | None:
    return None if part is None else read(part)


def _step(part: _Reader) -> StepRecord:
    return StepRecord(part.text("name"), part.integer("exit"), part.number("seconds"))


def _drift(part: _Reader) -> Drift:
    return Drift(
        detected=part.flag("detected"),
        create=part.integer("create"),
        update=part.integer("update"),
        replace=part.integer("replace"),
        delete=part.integer("delete"),
        resources=part.texts("resources"),
    )


def _failure(part: _Reader) -> Failure:
    return Failure(
        kind=part.text("kind"),
        step=part.text("step") or None,
        tail=part.text("tail"),
        resources=part.texts("resources") or (),
    )


def _changes(part: _Reader) -> Changes:
    return Changes(
        add=part.integer("add"),
        change=part.integer("change"),
        destroy=part.integer("destroy"),
        imported=part.integer("import"),
    )


def _plan(part: _Reader) -> Plan:
    return Plan(
        hash=part.text("hash"),
        create=part.integer("create"),
        update=part.integer("update"),
        replace=part.integer("replace"),
        delete=part.integer("delete"),
        output_changes=part.integer("outputChanges"),
        imported=part.integer("import"),
        move=part.integer("move"),
        forget=part.integer("forget"),
        resources=part.texts("resources") or (),
        truncated=part.flag("truncated"),
    )


def _unsaved(part: _Reader) -> Unsaved:
    return Unsaved(
        serial=part.integer("serial"),
        lineage=part.text("lineage"),
        resources=part.integer("resources"),
        secrets=part.integer("secrets"),
    )


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _whole(text: str) -> str:
    """The text without halves of surrogate pairs: no encoding takes them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
