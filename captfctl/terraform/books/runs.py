"""An object's finished runs as one value that answers the questions about them."""

from collections.abc import Iterable

from captfctl.model.ops import Op
from captfctl.runs.finished import newest_first
from captfctl.terraform.books.results import FinishedRun


class Runs(tuple[FinishedRun, ...]):
    """Finished runs, newest first."""

    __slots__ = ()

    @classmethod
    def of(cls, runs: Iterable[FinishedRun]) -> "Runs":
        """The runs, put in order."""
        return cls(newest_first(runs))

    def newest(self, *ops: Op) -> FinishedRun | None:
        """The run of any of the operations that ended last."""
        return next((run for run in self if run.op in ops), None)

    def newest_success(self, *ops: Op) -> FinishedRun | None:
        """The run of any of the operations that succeeded last."""
        return next((run for run in self if run.op in ops and run.ok), None)

    @property
    def unread(self) -> "Runs":
        """Those that no earlier pass has read."""
        return Runs(run for run in self if not run.bookkept)

    @property
    def restore(self) -> FinishedRun | None:
        """The newest unread run that may have put another state in place."""
        return next((run for run in self.unread if run.may_have_restored), None)

    @property
    def of_this_state(self) -> "Runs":
        """Those that ended after that restore; all where there is none."""
        restore = self.restore
        return self if restore is None else Runs(self[: self.index(restore)])
