"""What the parts of one run share."""

from runner import wire
from runner.events import Events
from runner.execute import stop_seconds
from runner.log import Log
from runner.redact import Redactor, SecretSet
from runner.result import Result
from runner.run_options import RunOptions


class Stop(Exception):
    """The run ends here: with a failure and an exit code, or, without a failure, well."""

    def __init__(self, failure: wire.Failure | None, exit_code: int = 1) -> None:
        super().__init__()
        self.failure = failure
        self.exit_code = exit_code


class Context:
    """The options of a run, its log, events and result, and what must not be shown."""

    def __init__(self, options: RunOptions, log: Log, events: Events) -> None:
        self.options = options
        self.log = log
        self.events = events
        self.result = Result(options.op, options.image, options.bin)
        self.redactor = Redactor()
        self.plan_key: bytes | None = None
        self._secrets = SecretSet()

    @property
    def stop_seconds(self) -> float:
        """The time between SIGTERM and SIGKILL for a step."""
        return stop_seconds(self.options.stop_timeout)

    def hide(self, *secrets: SecretSet) -> None:
        """Redact these values too, in everything written from now on."""
        for values in secrets:
            self._secrets.update(values)
        self.redactor = Redactor(self._secrets)
        self.log.redact_with(self.redactor.redact)
        self.events.redact_with(self.redactor.redact_text)
