"""What to run instead of an image that cannot be pulled (runs.md: Images that cannot be pulled)."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from captfctl.cluster.door import Door
from captfctl.model import keys
from captfctl.model.core import Job
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.runs.stuck import main_image
from captfctl.terraform.state.records import Records, mark_unpullable, unpullable_images

# An apply or plan has to run the image that the spec names.
REPLACEABLE = frozenset({Op.DESTROY, Op.REFRESH, Op.DRIFT, Op.RESTORE})


def image_instead(
    door: Door, owner: Owner, records: Records, job: Job, spec_image: str, now: datetime
) -> str:
    """The image for the next Job when that of `job` does not exist; empty when none is left.

    The image of `job` is recorded as one not to try again for a while. `spec_image` as below.
    """
    left = remaining_images(job, spec_image, unpullable_images(records, now))
    if not left or mark_unpullable(door, owner, main_image(job), now) is None:
        return ""
    return left[0]


def remaining_images(job: Job, spec_image: str, unpullable: Iterable[str]) -> list[str]:
    """The images still to try when the Job's own does not pull, in order.

    `spec_image` is what the current spec names, or the operator's own for a destroy; may be empty.
    """
    refused = {main_image(job), *unpullable, ""}
    wanted = dict.fromkeys([*_fallbacks(job), spec_image])
    return [image for image in wanted if image not in refused]


def _fallbacks(job: Job) -> list[str]:
    text = job.metadata.annotations.get(keys.IMAGE_FALLBACKS, "")
    try:
        return msgspec.json.decode(text, type=list[str])
    except msgspec.MsgspecError:
        return []
