"""What the steps of a pass hand to each other (reconcile.md: Order of a pass).

Each step takes what the steps before it learned and gives a value with what it adds. None of these
values is ever changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from captfctl.controller import Result
from captfctl.decide import Decision, Nanoseconds
from captfctl.model.conditions import ConditionValue
from captfctl.model.core import Job
from captfctl.reconcile.identity import Identity
from captfctl.terraform.books.bookkeeping import Bookkeeping
from captfctl.terraform.contract.values import ContractInputs
from captfctl.terraform.contract.variables import UserVariables
from captfctl.terraform.state.lock import StateLock
from captfctl.terraform.state.reader import State, Unreadable
from captfctl.terraform.state.records import Records


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the setup read. `jobs` are as cached; `lock` and `state` are there where they could be
    read with the records. `identity` is that of the object's runs."""

    jobs: Sequence[Job]
    records: Records
    identity: Identity
    lock: StateLock | None = None
    state: State | Unreadable | None = None


@dataclass(frozen=True, slots=True)
class StateView:
    """The state as this pass found it. `held`: no Job may run except a requested restore.

    `too_large`: there is one that cannot be read, with which Terraform can work. `backup_due`: its
    backup could not be written, and is tried again.
    """

    state: State | None
    held: bool = False
    too_large: Unreadable | None = None
    backup_due: bool = False

    @property
    def exists(self) -> bool:
        """Whether there is a state to work with."""
        return self.state is not None or self.too_large is not None

    @property
    def inputs_hash(self) -> str:
        """The hash recorded on the state; empty when there is none."""
        found = self.state or self.too_large
        return found.inputs_hash if found else ""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the object would be applied with now, or the gate that keeps it from being known.

    `counted_hash` is what failures are counted by. `held` says what waits for an approval and is
    not among the values; empty for nothing.
    """

    gate: ConditionValue | None = None
    values: ContractInputs | None = None
    variables: UserVariables = field(default_factory=dict)
    hash: str = ""
    counted_hash: str = ""
    held: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a pass knows once its Jobs are read.

    `state` None: it was not read in this pass. `records` are as this pass left them.
    `running_apply` is the name of the apply that runs. `awaited` says what an approval is awaited
    for; None: nothing was decided in this pass. `credentials_error` is what keeps Jobs from being
    started and is worth trying again.
    """

    books: Bookkeeping
    records: Records
    identity: Identity
    inputs_bytes: int = 0
    state: StateView | None = None
    inputs: Inputs = field(default_factory=Inputs)
    running_apply: str = ""
    awaited: str | None = None
    credentials_error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """What is to be done, and what it was decided from."""

    decision: Decision
    known: Known
    state: StateView


@dataclass(frozen=True, slots=True)
class Ended:
    """How a branch ended. `idle`: for how long nothing is due; None where something is."""

    known: Known
    requeue: timedelta
    idle: Nanoseconds | None = None

    @property
    def result(self) -> Result:
        """For the queue."""
        return Result(self.requeue.total_seconds())
