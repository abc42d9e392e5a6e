"""Which resources a state has, by the addresses that Terraform knows them by
(state.md: What a state has)."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from captfctl.cluster.door import Door
from captfctl.model.core import Secret
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.reader import (
    State,
    Unreadable,
    state_and_content,
    state_selector,
)
from captfctl.terraform.state.unsaved import KeptState, kept_chunks, read_kept

_MANAGED = "managed"
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_LAST_OF_FOUR_DIGITS = 0xFFFF


class _Instance(msgspec.Struct):
    """Its attributes are never decoded."""

    index_key: int | float | str | None = None
    deposed: str = ""


class _Resource(msgspec.Struct):
    mode: str = ""
    module: str = ""
    type: str = ""
    name: str = ""
    instances: list[_Instance] | None = None


class _Document(msgspec.Struct):
    resources: list[_Resource] | None = None


_DECODER = msgspec.json.Decoder(_Document)


@dataclass(frozen=True, slots=True)
class Contents:
    """A state and the addresses of its managed resources, one for each instance, in order."""

    state: State
    addresses: tuple[str, ...]


def read_contents(door: Door, owner: Owner) -> Contents | Unreadable:
    """What the object's state has, read live. Errors of the door are raised."""
    secrets = door.list(SECRETS, owner.namespace, labels=state_selector(owner)).items
    return contents_of(secrets, owner)


def contents_of(secrets: Sequence[Secret], owner: Owner) -> Contents | Unreadable:
    """The same of Secrets that were read, all that `state_selector` selects."""
    found = state_and_content(secrets, owner)
    if isinstance(found, Unreadable):
        return found
    state, content = found
    return Contents(state, addresses_in(content.text))


def kept_addresses(door: Door, owner: Owner, kept: KeptState) -> tuple[str, ...] | None:
    """The resources of a state that could not be stored, read live; None when it cannot be read."""
    found = read_kept(kept, kept_chunks(door, owner, kept))
    return None if isinstance(found, Unreadable) else addresses_in(found[1].text)


def addresses_in(text: bytes) -> tuple[str, ...]:
    """The addresses of the managed resources in a state file, as `terraform state list` writes
    them, and beside them the objects that wait to be destroyed, which that leaves out.

    `text` is one that `content_of` has read. A resource that is not as Terraform writes it is left
    out.
    """
    try:
        document = _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()
    return tuple(
        _address(resource, instance)
        for resource in document.resources or ()
        if resource.mode == _MANAGED
        for instance in resource.instances or ()
    )


def _address(resource: _Resource, instance: _Instance) -> str:
    module = f"{resource.module}." if resource.module else ""
    key = instance.index_key
    index = "" if key is None else f"[{_quoted(key)}]"
    deposed = f" (deposed {instance.deposed})" if instance.deposed else ""
    return f"{module}{resource.type}.{resource.name}{index}{deposed}"


def _quoted(key: int | float | str) -> str:
    """As Terraform's language writes it: what would begin a template is doubled, what cannot be
    printed is escaped."""
    if not isinstance(key, str):
        return str(key)
    text = "".join(_ESCAPES.get(character) or _printable(character) for character in key)
    return '"' + text.replace("${", "$${").replace("%{", "%%{") + '"'


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= _LAST_OF_FOUR_DIGITS else f"\\U{code:08x}"
