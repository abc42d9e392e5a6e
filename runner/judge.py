"""What a successful step means for the rest of the run (20 §13)."""

from collections.abc import Iterable

from runner import events, plan, restore, steps, summary
from runner.context import Context, Stop
from runner.jsontext import JsonError
from runner.result import BLOCKED, PLAN_CHANGED, Failure
from runner.ui import Counts


class BadOutput(Exception):
    """A step succeeded, but what it printed cannot be accepted; the text says why."""


class Judge:
    """Reads what steps printed and decides how the run goes on."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reading: plan.Reading | None = None

    def read(self, step: steps.Step, output: Iterable[bytes]) -> None:
        """Read the captured output of a step that succeeded. Raises BadOutput."""
        if step.name == steps.SHOW_JSON:
            self._read_plan(output)
        elif step.name == steps.STATE_LIST:
            self._count_restored(b"".join(output))

    def decide(self, step: steps.Step, exit_code: int) -> None:
        """Act on a step that succeeded; raises Stop when the run ends with it."""
        if step.name == steps.PLAN and exit_code == 0:
            self._no_changes()
        elif step.name == steps.SHOW_JSON and self._reading is not None:
            self._changes(self._reading)

    def _read_plan(self, output: Iterable[bytes]) -> None:
        try:
            reading = plan.read(output, self._context.plan_key)
        except JsonError as error:
            raise BadOutput(f"the plan could not be read: {error}") from None
        except RecursionError:
            raise BadOutput("the plan could not be read: nested too deeply") from None
        self._reading = reading
        if self._context.options.op != "drift":
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
        context.events.emit("PlanSummary", events.NORMAL, steps.PLAN, "The plan has no changes")
        if options.op == "drift":
            result.drift = plan.Drift()
        elif options.op == "plan":
            result.plan = plan.Summary()
        elif options.expect_plan not in ("", plan.EMPTY_HASH):
            self._plan_changed(plan.Summary())
        else:
            context.log.info("The plan has no changes, apply is skipped")
            result.changes = Counts()
            raise Stop(None, 0)

    def _changes(self, reading: plan.Reading) -> None:
        options, result = self._context.options, self._context.result
        found = reading.summary
        if options.op == "drift":
            result.drift = reading.drift
            self._announce(plan.action_counts_text(*reading.drift[:4]))
        elif options.op == "plan":
            result.plan = found
            self._announce(found.counts_text())
            self._log_plan(found)
        elif options.expect_plan:
            self._announce(found.counts_text())
            if found.hash != options.expect_plan:
                self._plan_changed(found)
            self._context.log.info("Applying the approved plan", hash=found.hash)
        else:
            counts = (found.create, found.update, found.replace, found.delete)
            self._announce(plan.action_counts_text(*counts))
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
        raise Stop(Failure(BLOCKED, None, context.redactor.redact_text(text)))

    def _plan_changed(self, found: plan.Summary) -> None:
        context = self._context
        text = summary.plan_changed(context.options.expect_plan, found)
        context.log.info("Apply stopped: the plan is not the approved one", summary=text)
        context.result.plan = found
        raise Stop(Failure(PLAN_CHANGED, None, context.redactor.redact_text(text)))

    def _announce(self, counts: str) -> None:
        self._context.events.emit("PlanSummary", events.NORMAL, steps.SHOW_JSON, f"Plan: {counts}")

    def _log_plan(self, found: plan.Summary) -> None:
        self._context.log.info(
            "Plan computed",
            hash=found.hash,
            create=found.create,
            update=found.update,
            replace=found.replace,
            delete=found.delete,
            **{"import": found.imports},
            move=found.moves,
            forget=found.forgets,
            outputChanges=found.output_changes,
        )
