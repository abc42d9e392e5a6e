"""Which names a user variable may have: for the controller and for admission's rules."""

import re
from typing import Final

from captfctl.model.interface import input_names
from captfctl.model.kinds import Role

IDENTIFIER: Final = "[a-zA-Z_][a-zA-Z0-9_-]*"
RESERVED_PREFIX: Final = "captf_"
META_ARGUMENTS = frozenset(
    {"source", "version", "providers", "count", "for_each", "depends_on", "lifecycle", "locals"}
)

# What is wrong with a name, each as the end of a sentence that begins with "the name" or the like.
NO_IDENTIFIER: Final = (
    "is not an identifier: use letters, digits, _ and -, and begin with a letter or _"
)
RESERVED_BY_PREFIX: Final = (
    f"is reserved: names that begin with {RESERVED_PREFIX} belong to the contract"
)
RESERVED_BY_MODULE_BLOCK: Final = "is reserved: it is an argument of Terraform's module block"

_IDENTIFIER = re.compile(IDENTIFIER)


def reserved_by_contract(role: Role) -> str:
    return f"is reserved: it is a contract input of the {role.value} role"


def name_problem(name: str, role: Role) -> str:
    """Why the role's modules cannot be given a user variable of this name; "" when they can."""
    if _IDENTIFIER.fullmatch(name) is None:
        return NO_IDENTIFIER
    if name.startswith(RESERVED_PREFIX):
        return RESERVED_BY_PREFIX
    if name in META_ARGUMENTS:
        return RESERVED_BY_MODULE_BLOCK
    if name in input_names(role):
        return reserved_by_contract(role)
    return ""
