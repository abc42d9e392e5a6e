"""What `captfctl delete` says and asks before it deletes anything."""

import json
import sys
from collections.abc import Iterator, Sequence

from captfctl.cli.confirm import confirm
from captfctl.cli.output import Document, escaped, resource_count
from captfctl.cli.styled import Line, Styled, print_styled
from captfctl.cli.targets import Target
from captfctl.errors import CaptfError
from captfctl.model.kinds import KINDS
from captfctl.reconcile.deletion_preview import Fate, Preview

_ADDRESSES_OF_ONE = 20
_ADDRESSES = 60
_OBJECTS = 30
_COUNTED = (Fate.DESTROYED, Fate.FORGOTTEN)


class Protected(CaptfError):
    """Objects are protected from being deleted."""

    code = "DeletionProtected"


def settle_deletion(previews: Sequence[Preview], *, yes: bool) -> None:
    """Say what the deletion would do; ask, where it does something.

    Raises `Protected` when it would be refused or held, and `NotConfirmed`.
    """
    show_previews(previews)
    refuse_protected(previews)
    if any(one.fate is not Fate.NOTHING for one in previews):
        word = _word(previews)
        confirm(word, "to delete it" if word == previews[0].name else "to delete them", yes=yes)


def refuse_protected(previews: Sequence[Preview]) -> None:
    """Raises `Protected` for all objects that are."""
    protected = [one for one in previews if one.unprotect]
    if not protected:
        return
    count = f"{len(protected)} of the objects are" if len(protected) > 1 else _name(protected[0])
    raise Protected(
        f"{count}{' is' * (len(protected) == 1)} protected: spec.deletionProtection is true",
        why="nothing was deleted",
        do="\n".join(f"{one.unprotect}" for one in protected[:_OBJECTS]),
    )


def _word(previews: Sequence[Preview]) -> str:
    """The name of what is deleted, that of the cluster among several, else how many they are."""
    leading = [one for one in previews if KINDS[one.kind].leads]
    named = previews if len(previews) == 1 else leading
    return named[0].name if len(named) == 1 else str(len(previews))


def show_previews(previews: Sequence[Preview]) -> None:
    """Counts, then addresses."""
    print_styled(_lines(previews), sys.stdout)


def as_json(previews: Sequence[Preview]) -> str:
    """Everything, uncut."""
    document: Document = {
        **{fate.value: _count(previews, fate) for fate in _COUNTED},
        "objects": [
            {
                "kind": one.kind,
                "namespace": one.namespace,
                "name": one.name,
                "fate": one.fate.value,
                "why": one.why,
                "protected": bool(one.unprotect),
                "resources": one.resources if one.resources is None else list(one.resources),
            }
            for one in previews
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=True)


def _count(previews: Sequence[Preview], fate: Fate) -> int:
    return sum(len(one.resources or ()) for one in previews if one.fate is fate)


_STYLES = {Fate.DESTROYED: "bold red", Fate.FORGOTTEN: "bold yellow", Fate.HELD: "bold yellow"}


def _lines(previews: Sequence[Preview]) -> Iterator[Line]:
    if not previews:
        yield Line("None of the objects exists or has infrastructure: nothing is destroyed.")
        return
    if len(previews) > 1:
        yield Line(*_total(previews))
        yield Line()
    left = _ADDRESSES
    shown = [one for one in previews if one.fate is not Fate.NOTHING or len(previews) == 1]
    for one in shown[:_OBJECTS]:
        yield Line(*_heading(one))
        addresses = one.resources or ()
        limit = max(min(_ADDRESSES_OF_ONE, left), 0)
        if len(addresses) == limit + 1 and limit:
            limit += 1  # a line that says "and 1 more" takes as much room
        for address in addresses[:limit]:
            yield Line(f"  {escaped(address)}")
        left -= min(len(addresses), limit)
        if len(addresses) > limit:
            yield Line(Styled(f"  … and {len(addresses) - limit} more", "dim"))
    rest = shown[_OBJECTS:]
    if rest:
        count = sum(len(one.resources or ()) for one in rest)
        text = f"… and {len(rest)} more objects with {resource_count(count)}"
        yield Line(Styled(text, "dim"))
    if len(shown) > _OBJECTS or any(len(one.resources or ()) > _ADDRESSES_OF_ONE for one in shown):
        yield Line(Styled("--dry-run -o json lists everything.", "dim"))


def _total(previews: Sequence[Preview]) -> Iterator[Styled]:
    destroyed, forgotten = (_count(previews, fate) for fate in _COUNTED)
    yield Styled(f"{len(previews)} objects: ")
    yield Styled(f"{resource_count(destroyed)} will be destroyed", _STYLES[Fate.DESTROYED])
    if forgotten:
        yield Styled(f", {forgotten} forgotten", _STYLES[Fate.FORGOTTEN])
    unknown = sum(one.fate in _COUNTED and one.resources is None for one in previews)
    if unknown:
        text = f"; of {unknown} the resources are not known"
        yield Styled(text, _STYLES[Fate.DESTROYED])
    held = sum(one.fate is Fate.HELD for one in previews)
    if held:
        yield Styled(f"; {held} will wait for a person", _STYLES[Fate.HELD])


def _heading(one: Preview) -> Iterator[Styled]:
    said = escaped(one.why)
    many = "its resources" if one.resources is None else resource_count(len(one.resources))
    ends = {
        Fate.DESTROYED: f"{many} will be destroyed",
        Fate.FORGOTTEN: f"{many} will be forgotten, and go on unmanaged",
        Fate.NOTHING: "nothing to destroy",
        Fate.HELD: "the deletion will wait for a person",
    }
    yield Styled(f"{_name(one)}: ", "bold")
    yield Styled(ends[one.fate], _STYLES.get(one.fate, "bold"))
    if said:
        yield Styled(f" ({said})" if one.fate is not Fate.HELD else f": {said}")
    if one.paused:
        yield Styled("; it is paused, and nothing happens until it is not")


def _name(one: Preview) -> str:
    return Target(one.kind, one.namespace, one.name).shown
