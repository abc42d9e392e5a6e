"""The state that a dead pod could not store, made safe before its directory goes
(local-mode.md: States that were not stored).

The runner does this itself while it lives. What it left in its work directory, because the API
server was away to its end or because it was killed, goes into the same Secrets from here.
"""

import logging
from collections.abc import Sequence

from captfctl.cluster.door import Door
from captfctl.cluster.errors import AlreadyExists, ApiError, Forbidden, Invalid, NotFound, TooLarge
from captfctl.embedded.agent.directory import PodDirectory
from captfctl.embedded.files import write_private
from captfctl.model.resources import SECRETS
from runner import kept, wire

_REFUSALS = (NotFound, Forbidden, Invalid, TooLarge)
_LEAVE_STATES = (f"--op={wire.APPLY}", f"--op={wire.DESTROY}")

log = logging.getLogger(__name__)


def keep_unsaved_state(door: Door, directory: PodDirectory) -> bool:
    """Keep what the pod's runner left; nothing of the pod may run any more.

    False when the API server is away: the file has to stay, and this has to be tried again.
    """
    file = directory.inside(wire.WORK) / wire.ERRORED_STATE
    record = directory.read()
    arguments = record.run_arguments if record is not None else []
    if not file.is_file() or not any(op in arguments for op in _LEAVE_STATES):
        return True
    state, place = file.read_bytes(), kept.Place.of_arguments(arguments)
    if place is None or kept.describe(state) is None:
        return True
    try:
        _write(door, kept.documents(state, place))
    except _REFUSALS as problem:
        _leave_on_node(directory, place, state, problem)
    except ApiError as problem:
        log.warning("the state of Job %s is not kept yet: %s", place.job, problem)
        return False
    else:
        log.warning("the state that Job %s could not store is kept in Secrets", place.job)
    file.unlink()
    return True


def _write(door: Door, documents: Sequence[dict[str, object]]) -> None:
    untyped = SECRETS.untyped()
    for document in documents:
        metadata = document["metadata"]
        assert isinstance(metadata, dict)
        try:
            door.create(untyped, document, metadata["namespace"])
        except AlreadyExists:
            # The runner's own: of this run, or of an earlier one, whose state this run has stored.
            door.patch(untyped, metadata["name"], metadata["namespace"], document)


def _leave_on_node(
    directory: PodDirectory, place: kept.Place, state: bytes, problem: Exception
) -> None:
    refuge = directory.path.parents[1] / "unsaved-states"
    refuge.mkdir(mode=0o700, exist_ok=True)
    file = refuge / f"{place.namespace}.{place.job or place.suffix}.tfstate"
    write_private(file, state)
    log.error("the state that Job %s could not store is left in %s: %s", place.job, file, problem)
