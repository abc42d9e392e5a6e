"""What the API server's audit log tells: who did what, and which Jobs lived when."""

import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from captfctl.model import keys
from captfctl.model.kinds import KINDS
from captfctl.model.ops import Op

# A watch is answered when it starts; its end may be an hour away.
_TELLING = {"watch": "ResponseStarted"}


@dataclass(frozen=True)
class Request:
    """One answered request. `resource` has its subresource: `jobs/status`."""

    user: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    code: int
    at: str
    answer: dict[str, Any] = field(default_factory=dict, hash=False, compare=False)

    @property
    def right(self) -> tuple[str, str, str]:
        return self.group, self.resource, self.verb


def requests(log: Path, since: int = 0) -> Iterator[Request]:
    """Answered requests in order; a line that is still being written is left out.

    `since` is the log's size before the first one asked for; a line that was begun by then is not.
    """
    with log.open("rb") as lines:
        if since:
            lines.seek(since - 1)
            lines.readline()
        for line in lines:
            if not line.endswith(b"\n"):
                return
            event = json.loads(line)
            about = event.get("objectRef")
            if not about or event["stage"] != _TELLING.get(event["verb"], "ResponseComplete"):
                continue
            resource = about["resource"]
            if about.get("subresource"):
                resource += f"/{about['subresource']}"
            yield Request(
                user=event["user"].get("username", ""),
                verb=event["verb"],
                group=about.get("apiGroup", ""),
                resource=resource,
                namespace=about.get("namespace", ""),
                name=about.get("name", ""),
                code=event.get("responseStatus", {}).get("code", 0),
                at=event["stageTimestamp"],
                answer=event.get("responseObject") or {},
            )


@dataclass(frozen=True)
class LiveJob:
    """A Job that has not ended."""

    name: str
    labels: dict[str, str] = field(hash=False, compare=False)

    @property
    def mutates(self) -> bool:
        return Op(self.labels[keys.OP]).mutating

    @property
    def of_leader(self) -> bool:
        """Whether it is a cluster's, and not that of something that belongs to it."""
        return KINDS[self.labels[keys.OWNER_KIND]].leads


def most_live_jobs(log: Path, namespace: str) -> int:
    """The greatest number of unfinished Jobs that any object ever had at one time."""
    counts = (
        Counter((job.labels[keys.OWNER_KIND], job.labels[keys.OWNER_NAME]) for job in live)
        for live in _live_jobs(log, namespace)
    )
    return max((max(count.values()) for count in counts if count), default=0)


def gate_overlaps(log: Path, namespace: str) -> set[frozenset[str]]:
    """The pairs of Jobs that mutated a cluster and something of it at one time."""
    return {
        frozenset({one.name, other.name})
        for live in _live_jobs(log, namespace)
        for one, other in itertools.combinations((job for job in live if job.mutates), 2)
        if one.labels[keys.CLUSTER_NAME] == other.labels[keys.CLUSTER_NAME]
        and one.of_leader != other.of_leader
    }


def _live_jobs(log: Path, namespace: str) -> Iterator[Collection[LiveJob]]:
    """A namespace's unfinished Jobs, each time that one began.

    From every answer that shows a Job being there, ending or going. Single lines may be missing,
    where the server was killed: later answers show the same Job.
    """
    live: dict[str, LiveJob] = {}
    seen: dict[str, int] = {}
    for request in requests(log):
        if request.namespace != namespace or request.group != "batch":
            continue
        if request.verb == "delete" and request.code == 200:
            live.pop(request.name, None)
        metadata = _changed_job(request)
        if keys.OWNER_NAME not in metadata.get("labels", {}):
            continue
        name, version = metadata["name"], int(metadata["resourceVersion"])
        if version < seen.get(name, 0):
            continue  # answered late
        seen[name] = version
        if _ended(request.answer):
            live.pop(name, None)
        elif name not in live:
            live[name] = LiveJob(name, metadata["labels"])
            yield live.values()


def _changed_job(request: Request) -> dict[str, Any]:
    """The metadata of the Job that a write answered with; empty for any other answer."""
    if request.verb not in ("create", "update", "patch") or request.answer.get("kind") != "Job":
        return {}
    metadata: dict[str, Any] = request.answer["metadata"]
    return metadata


def _ended(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions") or []
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions)
