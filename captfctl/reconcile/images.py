"""Which image runs an operation that must work with what was applied
(reconcile.md: What each operation renders)."""

from collections.abc import Sequence
from dataclasses import dataclass

from captfctl.model.ops import Op
from captfctl.model.terraform import TerraformObject
from captfctl.terraform.state.records import Record, Records

# An operator's way to destroy with an image that still can be pulled.
DESTROY_IMAGE = "captf.io/destroy-image"


@dataclass(frozen=True, slots=True)
class Images:
    """The image to run, and what to try when it cannot be pulled. `instead_of`: the image that
    would run, if it could be pulled; empty when it is the one that runs."""

    image: str
    fallbacks: tuple[str, ...] = ()
    pinned: bool = True
    instead_of: str = ""


def fallback_image(obj: TerraformObject, records: Records, op: Op | None) -> str:
    """The last image to try. A destroy does not take the current spec's when a record tells what
    was applied: it may be another release."""
    if op is not Op.DESTROY:
        return obj.spec.source.image
    override = obj.metadata.annotations.get(DESTROY_IMAGE, "")
    if override or records.attempt is not None or records.applied is not None:
        return override
    return obj.spec.source.image


def choose(record: Record | None, fallback: str, unpullable: Sequence[str]) -> Images:
    """The first candidate that is not known to be unpullable, else the last one."""
    own = [record.digest, record.image] if record is not None else []
    candidates = list(dict.fromkeys(image for image in [*own, fallback] if image))
    chosen = next((image for image in candidates if image not in unpullable), candidates[-1])
    rest = candidates[candidates.index(chosen) + 1 :]
    pinned = bool(record is not None and record.digest)
    instead_of = candidates[0] if chosen != candidates[0] else ""
    return Images(chosen, tuple(rest), pinned, instead_of)
