"""What can be wrong with the inputs of a run. No message ever holds a value."""

from typing import ClassVar

from captfctl.errors import CaptfError
from captfctl.model.reasons import ApplyJobSucceeded, DependenciesReady


class ContractError(CaptfError):
    """The inputs of an object cannot be built or rendered."""

    code = "ContractError"
    exit_code = 2


class InputsTooLarge(ContractError):
    """The rendered files exceed what one Secret may hold
    (module-contract.md: The rendered root module). Both sizes are in bytes."""

    code = ApplyJobSucceeded.INPUTS_TOO_LARGE.value

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the rendered inputs have {size} bytes, the limit is {limit}",
            do="make the user variables or the cluster's exports smaller",
        )
        self.size = size
        self.limit = limit


class VariablesError(ContractError):
    """User variables cannot be used: `DependenciesReady` False with `reason`."""

    reason: ClassVar[DependenciesReady] = DependenciesReady.VARIABLES_INVALID
    code = DependenciesReady.VARIABLES_INVALID.value


class VariablesSourceNotFound(VariablesError):
    """A source of variables does not exist, or may not be read."""

    reason = DependenciesReady.VARIABLES_SOURCE_NOT_FOUND
    code = DependenciesReady.VARIABLES_SOURCE_NOT_FOUND.value
