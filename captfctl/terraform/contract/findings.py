"""What is wrong with a module's outputs, and the condition that says so
(module-contract.md: Rules for outputs)."""

from dataclasses import dataclass, replace

from captfctl.model.conditions import TRUE, ConditionValue
from captfctl.model.reasons import OutputsValid

_GRAVEST_FIRST = (
    OutputsValid.OUTPUTS_INVALID,
    OutputsValid.FAILURE_DOMAIN_MISMATCH,
    OutputsValid.PROVIDER_ID_CHANGED,
)


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One broken rule, and the reason that stands for it."""

    output: str
    message: str
    reason: OutputsValid = OutputsValid.OUTPUTS_INVALID


@dataclass(frozen=True, kw_only=True)
class Findings:
    """`missing`: outputs that must not be null. `pending`: may be null for a while. `truncated`:
    cut to what an object may hold."""

    missing: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    truncated: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether `OutputsValid` is True."""
        return self._reason().status == TRUE

    def with_violations(self, *more: Violation) -> "Findings":
        """The findings together with what an object's own fields contradict."""
        return replace(self, violations=(*self.violations, *more))

    def concerns(self, output: str) -> bool:
        """Whether the previous status value of this output is kept."""
        return (
            output in self.missing
            or output in self.pending
            or any(violation.output == output for violation in self.violations)
        )

    def condition(self) -> ConditionValue:
        """`OutputsValid`: the gravest reason, and every problem in the message."""
        return self._reason().says("; ".join(self._parts()))

    def _reason(self) -> OutputsValid:
        if self.missing:
            return OutputsValid.OUTPUTS_MISSING
        broken = {violation.reason for violation in self.violations}
        for reason in _GRAVEST_FIRST:
            if reason in broken:
                return reason
        if self.pending:
            return OutputsValid.OUTPUTS_PENDING
        return OutputsValid.INSTANCES_TRUNCATED if self.truncated else OutputsValid.OUTPUTS_VALID

    def _parts(self) -> list[str]:
        parts = []
        if self.missing:
            parts.append(f"missing outputs: {', '.join(self.missing)}")
        parts += [violation.message for violation in self.violations]
        if self.pending:
            parts.append(f"outputs that are still null: {', '.join(self.pending)}")
        if self.truncated:
            parts.append(f"cut off at the limit: {', '.join(self.truncated)}")
        return parts


class Collector:
    """Findings while they are made."""

    def __init__(self) -> None:
        self._missing: list[str] = []
        self._pending: list[str] = []
        self._violations: list[Violation] = []
        self._truncated: list[str] = []

    def missing(self, output: str) -> None:
        """The output must not be null and is."""
        self._missing.append(output)

    def pending(self, output: str) -> None:
        """The output is still null, as it may be for a while."""
        self._pending.append(output)

    def truncated(self, output: str) -> None:
        """The output was cut to what an object may hold."""
        self._truncated.append(output)

    def invalid(self, output: str, problem: str) -> None:
        """`problem` continues the sentence that begins with the output's name."""
        self._violations.append(Violation(output=output, message=f"{output} {problem}"))

    def broken(self, output: str) -> bool:
        """Whether a rule of this output was found broken."""
        return any(violation.output == output for violation in self._violations)

    def findings(self) -> Findings:
        """Everything that was found."""
        return Findings(
            missing=tuple(self._missing),
            pending=tuple(self._pending),
            violations=tuple(self._violations),
            truncated=tuple(self._truncated),
        )
