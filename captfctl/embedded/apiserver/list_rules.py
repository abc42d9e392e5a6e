"""Which options of lists and watches go together, as in Kubernetes."""

from collections.abc import Iterator, Mapping

from captfctl.cluster.errors import Cause
from captfctl.embedded.store.violations import forbidden, unsupported

INITIAL = "sendInitialEvents"
MATCH = "resourceVersionMatch"
_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"


def list_causes(query: Mapping[str, str]) -> Iterator[Cause]:
    """What is wrong with the options of a list."""
    version, match = query.get("resourceVersion", ""), query.get(MATCH, "")
    if match and not version:
        yield forbidden(MATCH, f"{MATCH} is forbidden unless resourceVersion is provided")
    if match and query.get("continue"):
        yield forbidden(MATCH, f"{MATCH} is forbidden when continue is provided")
    if match not in ("", _EXACT, _NOT_OLDER):
        yield unsupported(MATCH, match, (_EXACT, _NOT_OLDER, ""))
    if match == _EXACT and version == "0":
        yield forbidden(MATCH, f'{MATCH} "exact" is forbidden for resourceVersion "0"')
    if INITIAL in query:
        yield forbidden(INITIAL, f"{INITIAL} is forbidden for list")


def watch_causes(query: Mapping[str, str]) -> Iterator[Cause]:
    """What is wrong with the options of a watch."""
    match = query.get(MATCH, "")
    if INITIAL in query and match != _NOT_OLDER:
        yield forbidden(MATCH, f"{INITIAL} requires setting {MATCH} to {_NOT_OLDER}")
    if match and INITIAL not in query:
        yield forbidden(MATCH, f"{MATCH} is forbidden for watch unless {INITIAL} is provided")
    if match not in ("", _NOT_OLDER):
        yield unsupported(MATCH, match, (_NOT_OLDER,))
    if query.get("continue"):
        yield forbidden(MATCH, f"{MATCH} is forbidden when continue is provided")
