"""What a successful step means for the rest of the run (runner.md: Decisions after a step)."""

from collections.abc import Iterable

from runner import events, plan, restore, steps, summary, wire
from runner.context import Context, Stop
from runner.jsontext import JsonError


class BadOutput(Exception):
    """A step succeeded, but what it printed cannot be accepted; the text says why."""


class Judge:
    """Reads what steps printed and decides how the run goes on."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reading: plan.Reading | None = None

    def read(self, step: steps.Step, output: Iterable[bytes]) -> None:
        """Read the captured output of a step that succeeded. Raises BadOutput."""
        if step.name == wire.SHOW_JSON:
            self._read_plan(output)
        elif step.name == wire.STATE_LIST:
            self._count_restored(b"".join(output))

    def decide(self, step: steps.Step, exit_code: int) -> None:
        """Act on a step that succeeded; raises Stop when the run ends with it."""
        if step.name == wire.PLAN and exit_code == 0:
            self._no_changes()
        elif step.name == wire.SHOW_JSON and self._reading is not None:
            self._changes(self._reading)

    def _read_plan(self, output: Iterable[bytes]) -> None:
        try:
            reading = plan.read(output, self._context.plan_key)
        except JsonError as error:
            raise BadOutput(f"the plan could not be read: {error}") from None
        except RecursionError:
            raise BadOutput("the plan could not be read: nested too deeply") from None
        self._reading = reading
        if self._context.options.op != wire.DRIFT:
            self._context.hide(reading.secrets)

    def _count_restored(self, listing: bytes) -> None:
        count = restore.managed_instances(listing)
        self._context.log.info("Restored state listed", count=count)
        expected = self._context.options.restore_resources
        if expected > 0 and count == 0:
            raise BadOutput(
                f"the restored state lists no managed resource, the backup holds {expected}"
            )

    def _no_changes(self) -> None:
        context = self._context
        options, result = context.options, context.result
        context.events.emit("PlanSummary", events.NORMAL, wire.PLAN, "The plan has no changes")
        if options.op == wire.DRIFT:
            result.drift = wire.Drift(resources=())
        elif options.op == wire.PLAN:
            result.plan = wire.Plan(wire.EMPTY_PLAN)
        elif options.expect_plan not in ("", wire.EMPTY_PLAN):
            self._plan_changed(wire.Plan(wire.EMPTY_PLAN))
        else:
            context.log.info("The plan has no changes, apply is skipped")
            result.changes = wire.Changes()
            raise Stop(None, 0)

    def _changes(self, reading: plan.Reading) -> None:
        options, result = self._context.options, self._context.result
        found = reading.summary
        if options.op == wire.DRIFT:
            result.drift = reading.drift
            self._announce(reading.drift.counts)
        elif options.op == wire.PLAN:
            result.plan = found
            self._announce(found.counts)
            self._log_plan(found)
        elif options.expect_plan:
            self._announce(found.counts)
            if found.hash != options.expect_plan:
                self._plan_changed(found)
            self._context.log.info("Applying the approved plan", hash=found.hash)
        else:
            self._announce(found.action_counts)
            self._guard(reading)

    def _guard(self, reading: plan.Reading) -> None:
        """Stop before a plan that destroys, unless its inputs were approved for that."""
        if not reading.destructive:
            return
        context, options = self._context, self._context.options
        text = summary.blocked(reading.destructive)
        if options.allow_deletes_hash and options.allow_deletes_hash == options.inputs_hash:
            context.log.info(
                "Applying an approved destructive plan",
                inputsHash=options.inputs_hash,
                summary=text,
            )
            return
        context.log.info(
            "Apply blocked",
            summary=text,
            inputsHash=options.inputs_hash,
            planHash=reading.summary.hash,
        )
        context.result.plan = reading.summary
        raise Stop(wire.Failure(wire.BLOCKED, None, context.redactor.redact_text(text)))

    def _plan_changed(self, found: wire.Plan) -> None:
        context = self._context
        text = summary.plan_changed(context.options.expect_plan, found)
        context.log.info("Apply stopped: the plan is not the approved one", summary=text)
        context.result.plan = found
        raise Stop(wire.Failure(wire.PLAN_CHANGED, None, context.redactor.redact_text(text)))

    def _announce(self, counts: str) -> None:
        self._context.events.emit("PlanSummary", events.NORMAL, wire.SHOW_JSON, f"Plan: {counts}")

    def _log_plan(self, found: wire.Plan) -> None:
        self._context.log.info(
            "Plan computed",
            hash=found.hash,
            create=found.create,
            update=found.update,
            replace=found.replace,
            delete=found.delete,
            **{"import": found.imported},
            move=found.move,
            forget=found.forget,
            outputChanges=found.output_changes,
        )
