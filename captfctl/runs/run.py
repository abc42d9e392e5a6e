"""A run that a subject wants, as the engine sees it."""

from dataclasses import dataclass

from captfctl.model.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. Equal runs have equal names, so that creating its Job twice finds the first.

    `name` is the Job's. `background` runs give way to others when Job slots are short.
    """

    subject: Subject
    operation: str
    name: str
    deadline_seconds: int
    background: bool = False

    @property
    def exclusive(self) -> bool:
        """Whether it takes part in its group's gate."""
        group = self.subject.group
        return group is not None and self.operation in group.exclusive
