"""The root module of a run: `main.tf.json` and `terraform.tfvars.json`
(module-contract.md: The rendered root module)."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from captfctl.model.interface import REQUIRED_OUTPUTS, inputs_of
from captfctl.model.kinds import Role
from captfctl.terraform.contract.errors import ContractError, InputsTooLarge
from captfctl.terraform.contract.jsontext import Json, pretty
from captfctl.terraform.contract.values import ContractInputs, MachineInputs, MachinePoolInputs
from captfctl.terraform.contract.variables import UserVariable, check_name
from runner import wire

SIZE_LIMIT: Final = 1_000_000

_BACKEND: Json = {"backend": {"kubernetes": {}}}


@dataclass(frozen=True, kw_only=True)
class RenderedFiles:
    """The two files of a run's root, as bytes of UTF-8."""

    main_tf_json: bytes
    tfvars_json: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """Bytes of both files."""
        return len(self.main_tf_json) + len(self.tfvars_json)

    def data(self) -> dict[str, bytes]:
        """As the keys of the per-run Secret and of the inputs records."""
        return {wire.MAIN_FILE: self.main_tf_json, wire.VARIABLES_FILE: self.tfvars_json}


def render(inputs: ContractInputs, variables: Mapping[str, UserVariable]) -> RenderedFiles:
    """The root that calls the module of the inputs' role. Equal inputs give equal bytes.

    Raises `InputsTooLarge`, `VariablesError` for a name the role does not allow, `ContractError`
    for bootstrap data that is not base64.
    """
    _check_bootstrap_data(inputs)
    for name in sorted(variables):
        check_name(name, inputs.role)
    values = inputs.values() | {name: variable.value for name, variable in variables.items()}
    files = RenderedFiles(
        main_tf_json=pretty(_root(inputs.role, variables)).encode(),
        tfvars_json=pretty(values).encode(),
    )
    if files.size > SIZE_LIMIT:
        raise InputsTooLarge(files.size, SIZE_LIMIT)
    return files


def render_restore() -> RenderedFiles:
    """The root of a restore: a backend and nothing else."""
    return RenderedFiles(main_tf_json=pretty({"terraform": _BACKEND}).encode(), tfvars_json=b"{}\n")


def _root(role: Role, variables: Mapping[str, UserVariable]) -> Json:
    declared: dict[str, Json] = {}
    for row in inputs_of(role):
        declared[row.name] = {
            "type": row.type,
            **({"default": None} if row.nullable else {}),
            **({"sensitive": True} if row.sensitive else {}),
        }
    for name, variable in variables.items():
        declared[name] = {"sensitive": True} if variable.sensitive else {}
    arguments: dict[str, Json] = {name: f"${{var.{name}}}" for name in declared}
    return {
        "terraform": _BACKEND,
        "variable": declared,
        "module": {"role": {"source": "../../module", **arguments}},
        "output": {
            name: {"value": f"${{module.role.{name}}}", "sensitive": True}
            for name in REQUIRED_OUTPUTS[role]
        },
    }


def _check_bootstrap_data(inputs: ContractInputs) -> None:
    if not isinstance(inputs, MachineInputs | MachinePoolInputs):
        return
    # Python also takes unused bits that are not zero; only the one standard spelling will do.
    try:
        decoded = base64.b64decode(inputs.bootstrap_data, validate=True)
    except (binascii.Error, ValueError):
        good = False
    else:
        good = base64.b64encode(decoded).decode() == inputs.bootstrap_data
    if not good:
        raise ContractError("bootstrap_data is not standard base64 with padding")
