"""The hashes that tell whether an object's inputs changed (api.md: The inputs hash)."""

import hashlib
from collections.abc import Mapping

from captfctl.model.kinds import CONTRACT_VERSION
from captfctl.terraform.contract.jsontext import Json, NotAnInteger, canonical_any, canonical_int
from captfctl.terraform.contract.values import ContractInputs
from captfctl.terraform.contract.variables import UserVariable

SCHEME = "h2"


def inputs_hash(image: str, inputs: ContractInputs, variables: Mapping[str, UserVariable]) -> str:
    """The hash of what an object would apply now: `h2:` and 64 hex digits.

    `image` is `spec.source.image` exactly as written. Raises `NotAnInteger` when the inputs hold a
    number that is not an integer (only the cluster's exports can; user variables may).
    """
    return _hash(canonical_int(_document(image, inputs.hash_view(), variables)))


def approval_hash(image: str, inputs: ContractInputs, variables: Mapping[str, UserVariable]) -> str:
    """The inputs hash without what changes by itself: what an approval is bound to."""
    return _hash(canonical_int(_document(image, inputs.approval_view(), variables)))


def exports_hash(exports: Json) -> str:
    """The hash of a cluster's exports; null counts as `{}`. Any number is accepted."""
    return _hash(canonical_any({} if exports is None else exports))


def hashable(value: Json) -> bool:
    """Whether the value can be part of the inputs of a machine or pool."""
    try:
        canonical_int(value)
    except NotAnInteger:
        return False
    return True


def _document(image: str, inputs: ContractInputs, variables: Mapping[str, UserVariable]) -> Json:
    document: dict[str, Json] = {
        "scheme": SCHEME,
        "contract": CONTRACT_VERSION,
        "role": inputs.role.value,
        "image": image,
        "inputs": inputs.values(),
    }
    if variables:
        document["variables"] = _variables_text(variables)
    return document


def _variables_text(variables: Mapping[str, UserVariable]) -> str:
    """A string and not an object, so that fractions never meet the rule for integers."""
    sensitive: list[Json] = [name for name in sorted(variables) if variables[name].sensitive]
    values: Json = {name: variable.value for name, variable in variables.items()}
    return canonical_any({"sensitive": sensitive, "values": values})


def _hash(text: str) -> str:
    return f"{SCHEME}:{hashlib.sha256(text.encode()).hexdigest()}"
