"""One operation from its flags to its result (runner.md: Order of a run)."""

import errno
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from runner import (
    durations,
    environ,
    events,
    fingerprint,
    kept,
    preflight,
    restore,
    secret_sources,
    steps,
    streams,
    summary,
    ui,
    wire,
    workdir,
)
from runner.context import Context, Stop
from runner.diagnostics import Diagnostic
from runner.execute import Command, Consumer, Ended, Supervisor
from runner.judge import BadOutput, Judge
from runner.keeper import Keeper
from runner.log import Log
from runner.rescue import UNRELEASED, Attempt, Failed, Rescue, Span
from runner.run_options import RunOptions
from runner.sinks import Sink
from runner.text import unwrapped
from runner.version_output import runtime_version

_LONGEST_EARLY_TAIL = 65536
_VERSION_STOP_SECONDS = 60.0
_PUSH_STOP_SECONDS = 10.0
_OUTCOMES = {
    wire.LAYOUT: "the image does not follow the contract",
    wire.STEP: "failed",
    wire.INTERRUPTED: "interrupted",
    wire.BLOCKED: "blocked",
    wire.PLAN_CHANGED: "the plan differs from the approved one",
}
_HARMLESS_UNLOCK = ("state is already unlocked", "does not match existing lock")


class Run:
    """Carries out one operation. Use it once."""

    def __init__(
        self,
        options: RunOptions,
        inherited: Mapping[str, str],
        log: Log,
        supervisor: Supervisor,
        out: Sink,
        err: Sink,
    ) -> None:
        self._inherited = inherited
        self._supervisor = supervisor
        self._out = out
        self._err = err
        self._context = Context(options, log, events.Events.for_run(options, inherited, log))
        self._environment: dict[str, str] = {}
        self._workdir = workdir.Workdir(options.workdir, f"{options.workdir}/root", "")
        self._running = ""
        """The step that has begun and is not recorded yet."""

    def execute(self) -> int:
        """Run the operation, write its result and return the exit code
        (runner.md: Exit codes of the runner)."""
        started = time.monotonic()
        result = self._context.result
        try:
            self._operate()
            exit_code = 0
        except Stop as stop:
            result.error = stop.failure
            exit_code = stop.exit_code
        except Exception as error:
            result.error = self._internal_failure(error)
            exit_code = 1
        self._announce_end(exit_code, time.monotonic() - started)
        self._context.events.close()
        return self._write_result(exit_code)

    def _operate(self) -> None:
        context, options = self._context, self._context.options
        try:
            planned = steps.for_operation(options, self._workdir)
        except KeyError:
            failure = wire.Failure(wire.STEP, wire.PLAN, f"unknown operation {options.op!r}")
            raise Stop(failure, 2) from None
        self._prepare()
        version = self._runtime_version()
        context.result.runtime_version = version
        context.events.emit(
            "RunStarted",
            events.NORMAL,
            options.op,
            f"Started {options.op} of image {options.image or '(not named)'}, "
            f"runtime version {version or 'unknown'}",
        )
        judge = Judge(context)
        for step in planned:
            if not step.after_changes or context.result.steps[-1].exit == 2:
                self._run_step(step, judge)

    def _prepare(self) -> None:
        """Everything that must be right before the first command."""
        context, options = self._context, self._context.options
        try:
            preflight.check(options.module, options.bin, self._inherited)
        except preflight.LayoutError as error:
            raise self._early(
                wire.LAYOUT, None, "The image does not follow the contract", error
            ) from None
        try:
            self._workdir = workdir.prepare(
                options.workdir,
                options.config,
                options.providers,
                own_tmp="TMPDIR" not in self._inherited,
            )
            context.result.providers_mirror = bool(self._workdir.cli_config)
            self._build_environment()
            self._assemble_states()
        except workdir.PrepareError as error:
            raise self._early(
                wire.STEP, wire.PREPARE, "The run could not be prepared", error
            ) from None
        self._load_plan_key()
        context.hide(
            secret_sources.of_environment(self._environment),
            secret_sources.of_inputs(self._workdir.root),
        )

    def _assemble_states(self) -> None:
        """The state that the run is to store: of a backup, or of an earlier run. Raises
        PrepareError."""
        options, place = self._context.options, self._workdir
        if options.op == wire.RESTORE:
            state = restore.assemble(options.config, options.restore_chunks)
            workdir.write_private(place.restore_state, state)
        if steps.recovers(options):
            chunks, directory = options.unsaved_chunks, wire.UNSAVED_DIRECTORY
            state = restore.assemble(options.config, chunks, directory)
            workdir.write_private(place.unsaved_state, state)

    def _early(self, kind: str, step: str | None, what: str, error: Exception) -> Stop:
        text = str(error)
        self._context.log.error(text, what)
        data = text.encode("utf-8", "replace")[-_LONGEST_EARLY_TAIL:]
        return Stop(wire.Failure(kind, step, data.decode("utf-8", "ignore")))

    def _build_environment(self) -> None:
        path, mirror = self._workdir.path, self._workdir.cli_config
        self._environment = environ.build(self._inherited, path, mirror)
        if dropped := environ.dropped(self._inherited):
            self._context.log.info(
                "Variables that would change the runtime are ignored", vars=dropped
            )

    def _load_plan_key(self) -> None:
        """A plan and an approved apply need the key; a guarded apply goes on without it."""
        context, options = self._context, self._context.options
        needed = options.op == wire.PLAN or (options.op == wire.APPLY and bool(options.expect_plan))
        if not needed and not steps.planned(options):
            return
        try:
            context.plan_key = fingerprint.read_key(options.plan_key_file)
        except fingerprint.KeyFileError as error:
            if needed:
                raise self._early(
                    wire.STEP, wire.PREPARE, "The plan key is not usable", error
                ) from None
            context.log.info("The plan gets no fingerprint", err=str(error))

    def _runtime_version(self) -> str:
        captured = streams.Captured()
        ended = self._command(steps.VERSION, captured, streams.Discarded(), _VERSION_STOP_SECONDS)
        if ended.exit != 0 or ended.error:
            return ""
        return runtime_version(b"".join(captured.take()))

    def _run_step(self, step: steps.Step, judge: Judge) -> None:
        context = self._context
        context.log.info("Step started", step=step.name)
        context.events.emit("StepStarted", events.NORMAL, step.name, f"Step {step.name} started")
        output = _Output(step, context, self._out, self._err)
        self._running = step.name
        began = time.time()
        ended = self._command(step, output.stdout, output.stderr, context.stop_seconds)
        if self._is_torn(step, ended, output):
            ended, output = self._again_without_torn_state(step, ended, output)
        ran = Span(began, time.time())
        record = self._record(step, ended)
        self._running = ""
        if step.json_ui:
            context.result.changes = output.counts
        if not _succeeded(step, ended, output.stderr.last()):
            self._fail(step, ended, ran, record, output)
        try:
            judge.read(step, output.captured())
        except BadOutput as error:
            text = context.redactor.redact_text(str(error))
            self._step_failed(record._replace(exit=0), text)
            raise Stop(wire.Failure(wire.STEP, step.name, text)) from None
        context.events.emit(
            "StepSucceeded",
            events.NORMAL,
            step.name,
            f"Step {step.name} succeeded: exit code {record.exit}, {record.seconds:.1f} s",
        )
        self._announce_changes(step, output)
        judge.decide(step, ended.exit)

    def _is_torn(self, step: steps.Step, ended: Ended, output: "_Output") -> bool:
        """Whether a step failed because the stored state was written in part, while a whole one is
        kept."""
        early = step.name in (wire.INIT, wire.STATE_RECOVER)
        kept_one = steps.recovers(self._context.options)
        return early and kept_one and Attempt(ended, output.stderr.last()).torn

    def _again_without_torn_state(
        self, step: steps.Step, ended: Ended, output: "_Output"
    ) -> tuple[Ended, "_Output"]:
        """The step once more, with an empty state in the place of the torn one: the kept state will
        take it."""
        keeper = self._keeper()
        cleared = keeper.clear_stored()
        keeper.close()
        if not cleared:
            return ended, output
        again = _Output(step, self._context, self._out, self._err)
        stop = self._context.stop_seconds
        return self._command(step, again.stdout, again.stderr, stop), again

    def _command(
        self,
        step: steps.Step,
        out: Consumer,
        err: Consumer,
        stop: float,
        limit: float | None = None,
        stdin: bytes = b"",
    ) -> Ended:
        arguments = (*self._context.options.bin, *step.arguments)
        command = Command(arguments, self._workdir.root, self._environment, stop, stdin)
        return self._supervisor.run(command, out, err, limit=limit)

    def _record(self, step: steps.Step, ended: Ended) -> wire.StepRecord:
        record = wire.StepRecord(step.name, ended.exit, math.floor(ended.seconds * 10 + 0.5) / 10)
        self._context.result.steps.append(record)
        self._context.log.info(
            "Step finished", step=record.name, exit=record.exit, seconds=record.seconds
        )
        return record

    def _fail(
        self,
        step: steps.Step,
        ended: Ended,
        ran: Span,
        record: wire.StepRecord,
        output: "_Output",
    ) -> NoReturn:
        """End the run because a step failed."""
        context = self._context
        interrupted = self._supervisor.cancelled
        tail = summary.of_step(
            step.name,
            ended,
            output.stderr.last(),
            context.redactor,
            validation=b"".join(output.captured()),
            shown=output.diagnostics,
            crash=output.crash(),
        )
        self._step_failed(record, tail)
        if step.json_ui:
            self._rescue_state(step, ran, output)
        kind = wire.INTERRUPTED if interrupted else wire.STEP
        own = ended.exit if not ended.error and ended.exit >= 1 else 1
        raise Stop(wire.Failure(kind, step.name, tail, output.failing_resources()), own)

    def _step_failed(self, record: wire.StepRecord, text: str) -> None:
        self._context.events.emit(
            "StepFailed",
            events.WARNING,
            record.name,
            f"Step {record.name} failed: exit code {record.exit}, {record.seconds:.1f} s: {text}",
        )

    def _rescue_state(self, step: steps.Step, ran: Span, output: "_Output") -> None:
        """Store the state the runtime could not store itself
        (runner.md: A state that could not be stored)."""
        context, options = self._context, self._context.options
        unreleased = any(one.summary == UNRELEASED for one in output.diagnostics)
        rescue = Rescue(context, self._supervisor, self._workdir, self._push, self._keeper())
        started = time.monotonic()
        last = rescue.save(Failed(step.name, ran, output.state_dump, unreleased))
        if last is None:
            return
        seconds = time.monotonic() - started
        push = steps.push_errored_state(options, "-", waits=False)
        record = self._record(push, last.ended._replace(seconds=seconds))
        if not last.stored:
            text = summary.of_step(push.name, last.ended, last.stderr, context.redactor)
            kept = rescue.said_of_secrets
            self._step_failed(record, f"the state was not saved{kept}: {text}")

    def _push(self, step: steps.Step, stdin: bytes, limit: float) -> Attempt:
        output = _Output(step, self._context, self._out, self._err)
        stop = min(self._context.stop_seconds, _PUSH_STOP_SECONDS)
        ended = self._command(step, output.stdout, output.stderr, stop, limit, stdin)
        return Attempt(ended, output.stderr.last())

    def _keeper(self) -> Keeper:
        options, log = self._context.options, self._context.log
        place = kept.Place.of(options.backend_config, options.event_object, options.job_name)
        try:
            server = events.api_server(self._inherited)
        except (OSError, ValueError):
            server = None
        return Keeper(log, place, server)

    def _announce_changes(self, step: steps.Step, output: "_Output") -> None:
        counts = output.counts
        if counts is not None:
            self._context.events.emit(
                "ResourcesChanged",
                events.NORMAL,
                step.name,
                f"{counts.add} added, {counts.change} changed, {counts.destroy} destroyed, "
                f"{counts.imported} imported",
            )

    def _internal_failure(self, error: Exception) -> wire.Failure:
        """A defect of the runner: its kind and place are told, its text may hold values."""
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = ""
        if place is not None:
            file = os.path.basename(place.tb_frame.f_code.co_filename)
            where = f" at {file}:{place.tb_lineno}"
        text = f"internal error: {type(error).__name__}{where}"
        self._context.log.error(text, "The run stopped on a defect of the runner")
        recorded = self._context.result.steps
        if self._running:
            # It may have changed something: the reader of the result must know that it began.
            recorded.append(wire.StepRecord(self._running, 1, 0.0))
        return wire.Failure(wire.STEP, recorded[-1].name if recorded else wire.PREPARE, text)

    def _announce_end(self, exit_code: int, seconds: float) -> None:
        options, error = self._context.options, self._context.result.error
        spent = durations.spoken(seconds)
        if error is None:
            note = f"{options.op} succeeded after {spent}"
            self._context.events.emit("RunFinished", events.NORMAL, options.op or "run", note)
            return
        at = f" at step {error.step}" if error.step and error.kind != wire.LAYOUT else ""
        note = f"{options.op}: {_OUTCOMES[error.kind]}{at} after {spent}, exit code {exit_code}"
        self._context.events.emit("RunFinished", events.WARNING, options.op or "run", note)

    def _write_result(self, exit_code: int) -> int:
        path = self._context.options.result
        self._context.result.hide(self._context.redactor.redact_text)
        try:
            self._write_with_room(path)
        except OSError as error:
            reason = f"{path}: {error.strerror}"
        else:
            return exit_code
        self._context.log.error(reason, "The result could not be written")
        return exit_code or 1

    def _write_with_room(self, path: str) -> None:
        """Write the result; on a full disk once more, after what is of no use has gone."""
        try:
            self._context.result.write(path)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self._workdir.make_room()
            self._context.result.write(path)


class _Output:
    """Where one step's output goes, as the step asks for."""

    def __init__(self, step: steps.Step, context: Context, out: Sink, err: Sink) -> None:
        redactor = context.redactor
        logged = streams.Logged(redactor, out)
        self._ui = ui.JsonUi(redactor, out, err) if step.json_ui else None
        self._captured = streams.Captured(logged if step.log else None) if step.capture else None
        self.stdout: Consumer = self._ui or self._captured or logged
        self.stderr = streams.Tail(streams.Logged(redactor, err))

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """The errors and warnings of the runtime, when it reports them as JSON."""
        return self._ui.diagnostics if self._ui is not None else ()

    @property
    def counts(self) -> wire.Changes | None:
        """How much was changed, when a closing line says so."""
        return self._ui.counts if self._ui is not None else None

    @property
    def state_dump(self) -> bytes:
        """The state that the runtime printed because it could not write it; else empty."""
        return self._ui.state_dump if self._ui is not None else b""

    def failing_resources(self) -> tuple[str, ...]:
        """`<address>: <summary>` of the resources that failed, as far as they can be told."""
        return self._ui.failing_resources() if self._ui is not None else ()

    def crash(self) -> bytes:
        """The line that a crash of the runtime began with; empty without one."""
        return self.stderr.crash or (self._ui.crash if self._ui is not None else b"")

    def captured(self) -> Iterator[bytes]:
        """What the step printed, in pieces, when it is captured."""
        return self._captured.take() if self._captured is not None else iter(())


def _succeeded(step: steps.Step, ended: Ended, stderr: bytes) -> bool:
    if ended.error:
        return False
    if ended.exit in step.ok:
        return True
    if step.name != wire.FORCE_UNLOCK:
        return False
    # Somebody else has cleared the lock, or holds a new one; the next step finds out. OpenTofu
    # breaks the text into the lines of a box.
    said = unwrapped(stderr)
    return any(text in said for text in _HARMLESS_UNLOCK)
