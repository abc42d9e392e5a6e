"""User variables: where they come from, which names they may have (api.md: User variables).

Errors name the variable or its source, never a value: a value may be a password.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from captfctl.model import keys
from captfctl.model.core import ConfigMap, Secret
from captfctl.model.kinds import Role
from captfctl.model.terraform import VariableFormat, VariablesSource
from captfctl.model.variable_names import name_problem
from captfctl.terraform.contract.errors import VariablesError, VariablesSourceNotFound
from captfctl.terraform.contract.jsontext import Json, NotJson, parse


class SourceKind(StrEnum):
    """The kinds that variables are read from."""

    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"


@dataclass(frozen=True, kw_only=True)
class UserVariable:
    """One variable after the merge. `text` tells that it came from a source of format `String`:
    what a module may convert it to is then less certain
    (module-contract.md: The schema of variables)."""

    value: Json = field(repr=False)
    sensitive: bool = False
    text: bool = False


UserVariables = Mapping[str, UserVariable]


@dataclass(frozen=True, kw_only=True)
class SourceRef:
    """One entry of `spec.variablesFrom`, told which object to read."""

    index: int
    kind: SourceKind
    name: str
    optional: bool
    format: VariableFormat

    @property
    def path(self) -> str:
        """Where the entry stands, as error messages name it."""
        return f"spec.variablesFrom[{self.index}]"


def source_refs(sources: Iterable[VariablesSource]) -> list[SourceRef]:
    """What the caller has to read, in list order. An entry without a reference is left out: the
    schema refuses it."""
    refs = []
    for index, source in enumerate(sources):
        if source.secret_ref is not None:
            kind, ref = SourceKind.SECRET, source.secret_ref
        elif source.config_map_ref is not None:
            kind, ref = SourceKind.CONFIG_MAP, source.config_map_ref
        else:
            continue
        refs.append(
            SourceRef(
                index=index,
                kind=kind,
                name=ref.name,
                optional=source.optional,
                format=source.format or VariableFormat.STRING,
            )
        )
    return refs


def merge_variables(
    role: Role,
    inline: msgspec.Raw | bytes,
    sources: Iterable[tuple[SourceRef, Secret | ConfigMap | None]],
) -> dict[str, UserVariable]:
    """Every user variable of an object: later sources win over earlier ones, inline over all.

    `inline` is the JSON text of `spec.variables`, empty when it is not set. A source is paired with
    the object that was read for it, None when there is none.

    Raises `VariablesSourceNotFound` and `VariablesError`.
    """
    merged: dict[str, UserVariable] = {}
    for ref, obj in sources:
        merged.update(_from_source(role, ref, obj))
    for name, value in parse_inline(inline).items():
        merged[name] = UserVariable(value=value)
    for name in sorted(merged):
        check_name(name, role)
    return merged


def parse_inline(inline: msgspec.Raw | bytes) -> dict[str, Json]:
    """`spec.variables`. Raises `VariablesError` for anything but a JSON object, without quoting
    it."""
    text = bytes(inline)
    if not text:
        return {}
    try:
        value = parse(text)
    except NotJson as error:
        raise VariablesError(
            "the inline variables cannot be read", where="spec.variables", why=error.what
        ) from None
    if not isinstance(value, dict):
        raise VariablesError("the inline variables must be a JSON object", where="spec.variables")
    return value


def check_name(name: str, role: Role, where: str = "") -> None:
    """Raises `VariablesError`."""
    problem = name_problem(name, role)
    if problem:
        raise VariablesError(f"variable {name!r} {problem}", where=where, do="rename the variable")


def _from_source(
    role: Role, ref: SourceRef, obj: Secret | ConfigMap | None
) -> dict[str, UserVariable]:
    if obj is None or obj.metadata.labels.get(keys.VARIABLES) != keys.TRUE:
        if ref.optional:
            return {}
        raise _not_found(ref, missing=obj is None)
    found = {}
    data = _data(obj)
    for key in sorted(data):
        where = f"{ref.path}: key {key!r} of {ref.kind} {ref.name}"
        check_name(key, role, where)
        found[key] = UserVariable(
            value=_value(data[key], ref.format, where),
            sensitive=ref.kind is SourceKind.SECRET,
            text=ref.format is VariableFormat.STRING,
        )
    return found


def _not_found(ref: SourceRef, missing: bool) -> VariablesSourceNotFound:
    label = f"{keys.VARIABLES}={keys.TRUE}"
    if missing:
        return VariablesSourceNotFound(
            f"{ref.kind} {ref.name} does not exist",
            where=ref.path,
            do=f"create it with the label {label}",
        )
    return VariablesSourceNotFound(
        f"{ref.kind} {ref.name} does not carry the label {label}",
        where=ref.path,
        do="add the label to let it be read",
    )


def _data(obj: Secret | ConfigMap) -> dict[str, bytes]:
    if isinstance(obj, Secret):
        return obj.data
    return {key: text.encode() for key, text in obj.data.items()} | obj.binary_data


def _value(raw: bytes, form: VariableFormat, where: str) -> Json:
    try:
        text = raw.decode("utf-8")
        return text if form is VariableFormat.STRING else parse(text)
    except UnicodeDecodeError:
        raise VariablesError("the value is not UTF-8", where=where) from None
    except NotJson as error:
        raise VariablesError(
            "the value is not usable in format JSON", where=where, why=error.what
        ) from None
