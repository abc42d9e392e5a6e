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
from captfctl.reconcile.restore import Request
from captfctl.terraform.books.bookkeeping import Bookkeeping
from captfctl.terraform.contract.values import ContractInputs
from captfctl.terraform.contract.variables import UserVariables
from captfctl.terraform.plans.drafts import Plans
from captfctl.terraform.state.lock import StateLock
from captfctl.terraform.state.reader import State, Unreadable
from captfctl.terraform.state.records import Records


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the setup read. `jobs` are as cached; `lock` and `state` are there where they could be
    read with the records. `identity` is that of the object's runs. `plans` are as cached; those
    that the object contradicts as read live."""

    jobs: Sequence[Job]
    records: Records
    identity: Identity
    plans: Plans = field(default_factory=Plans)
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
class Guard:
    """A change that may replace everything (plans.md: Changed exports of a pool).

    `approval_hash` is what its approval is bound to, `exports_hash` the hash of the exports that
    its apply renders. `unheld` says why it cannot wait while other changes are applied; empty where
    it can.
    """

    approval_hash: str
    exports_hash: str
    unheld: str = ""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the object would be applied with now, or the gate that keeps it from being known.

    `counted_hash` is what failures are counted by. `guard` is set where applying these inputs may
    replace what no other change may. `held` says what of it waits for an approval and is not among
    the values; empty for nothing.
    """

    gate: ConditionValue | None = None
    values: ContractInputs | None = None
    variables: UserVariables = field(default_factory=dict)
    hash: str = ""
    counted_hash: str = ""
    guard: Guard | None = None
    held: str = ""

    @property
    def guarded(self) -> bool:
        """Whether an apply of the values stops at a plan that deletes or replaces."""
        return self.guard is not None and not self.held


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a pass knows once its Jobs are read.

    `state` None: it was not read in this pass. `records` are as this pass left them.
    `running_apply` is the name of the apply that runs. `plans` are as this pass left them, too.
    `restore` is what is asked for and can be done. `decision` None: nothing was decided in this
    pass. `credentials_error` is what keeps Jobs from being started and is worth trying again.
    """

    books: Bookkeeping
    records: Records
    identity: Identity
    inputs_bytes: int = 0
    state: StateView | None = None
    inputs: Inputs = field(default_factory=Inputs)
    plans: Plans = field(default_factory=Plans)
    running_apply: str = ""
    restore: Request = field(default_factory=Request)
    decision: Decision | None = None
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
