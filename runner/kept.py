"""A state that could not be stored, kept in Secrets until a later run stores it
(runner.md: A state that could not be stored).

The runner makes these Secrets, and so does the node agent from the file that a dead runner left.
They are outside of the backend's selection: Terraform neither reads nor removes them.
"""

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from runner import wire
from runner.events import ObjectReference

PIECE = 1_000_000
"""Bytes of a Secret's data; the API server takes 1 MiB of them."""
_GZIP = 31  # window bits: with a gzip header
_LONGEST_LINEAGE = 64
_HCL_PAIR = re.compile(r'"([^"]*)"="([^"]*)"')
_SUFFIX, _NAMESPACE, _LABELS = "secret_suffix=", "namespace=", "labels="


class Place(NamedTuple):
    """Whose state it is, as the arguments of the run tell."""

    namespace: str
    suffix: str
    labels: Mapping[str, str]
    owner: ObjectReference | None
    job: str

    @classmethod
    def of(cls, backend: Iterable[str], event_object: str, job: str) -> "Place | None":
        """From the values of `--backend-config`, `--event-object` and `--job-name`; None when
        they do not say enough."""
        found = dict.fromkeys((_SUFFIX, _NAMESPACE, _LABELS), "")
        for value in backend:
            for key in found:
                if value.startswith(key):
                    found[key] = value.removeprefix(key)
        if not found[_SUFFIX] or not found[_NAMESPACE]:
            return None
        try:
            owner = ObjectReference.parse(event_object) if event_object else None
        except ValueError:
            owner = None
        labels = dict(_HCL_PAIR.findall(found[_LABELS]))
        return cls(found[_NAMESPACE], found[_SUFFIX], labels, owner, job)

    @classmethod
    def of_arguments(cls, arguments: Iterable[str]) -> "Place | None":
        """From the whole command line of a run."""
        given: dict[str, list[str]] = {}
        for argument in arguments:
            flag, _, value = argument.partition("=")
            given.setdefault(flag, []).append(value)
        last = {flag: values[-1] for flag, values in given.items()}
        return cls.of(
            given.get("--backend-config", ()),
            last.get("--event-object", ""),
            last.get("--job-name", ""),
        )

    def name(self, part: int = 0) -> str:
        """The name of a Secret; part 0 is the base."""
        return wire.kept_secret(self.suffix, part)


def describe(state: bytes) -> wire.Unsaved | None:
    """What a state says of itself; None when it is no whole state."""
    try:
        document = json.loads(state)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("version"), int):
        return None
    serial, lineage, listed = (document.get(key) for key in ("serial", "lineage", "resources"))
    blocks = listed if isinstance(listed, list) else []
    managed = sum(isinstance(one, dict) and one.get("mode") == "managed" for one in blocks)
    return wire.Unsaved(
        serial=serial if isinstance(serial, int) else 0,
        lineage=lineage[:_LONGEST_LINEAGE] if isinstance(lineage, str) else "",
        resources=managed,
    )


def packed(state: bytes) -> bytes:
    """As the runtime's backend packs it, too."""
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(state) + packer.flush()


def documents(state: bytes, place: Place) -> list[dict[str, Any]]:
    """The Secrets that keep `state`, in the order in which they must be written: the base comes
    last, and tells how many there are."""
    whole = packed(state)
    pieces = [whole[start : start + PIECE] for start in range(0, len(whole), PIECE)]
    found = describe(state) or wire.Unsaved()
    notes = {
        wire.KEPT_JOB: place.job,
        wire.KEPT_PARTS: str(len(pieces)),
        wire.KEPT_SERIAL: str(found.serial),
        wire.KEPT_LINEAGE: found.lineage,
        wire.KEPT_RESOURCES: str(found.resources),
    }
    return [
        _secret(place, part, pieces[part], {} if part else notes)
        for part in reversed(range(len(pieces)))
    ]


def _secret(place: Place, part: int, data: bytes, notes: Mapping[str, str]) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": place.name(part),
        "namespace": place.namespace,
        "labels": {**place.labels, wire.KEPT_LABEL: place.suffix},
        "annotations": dict(notes),
    }
    owner = place.owner
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": owner.name,
                "uid": owner.uid,
            }
        ]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "data": {wire.KEPT_KEY: b64encode(data).decode()},
    }
