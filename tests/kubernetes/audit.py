"""What the API server's audit log tells: who did what, and which Jobs lived when."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


def most_live_jobs(log: Path, owner_label: str) -> dict[tuple[str, str], int]:
    """The greatest number of unfinished Jobs that each object ever had at one time.

    By namespace and owner name; from every answer that shows a Job being there, ending or going.
    Single lines may be missing, where the server was killed: later answers show the same Job.
    """
    live: dict[tuple[str, str], set[str]] = defaultdict(set)
    most: dict[tuple[str, str], int] = defaultdict(int)
    seen: dict[str, int] = {}
    for request in requests(log):
        if request.group != "batch" or not request.resource.startswith("jobs"):
            continue
        if request.verb == "delete" and request.code == 200:
            for names in live.values():
                names.discard(f"{request.namespace}/{request.name}")
        metadata = _changed_job(request)
        owner = metadata.get("labels", {}).get(owner_label)
        if not owner:
            continue
        name = f"{request.namespace}/{metadata['name']}"
        version = int(metadata["resourceVersion"])
        if version < seen.get(name, 0):
            continue  # answered late
        seen[name] = version
        key = (request.namespace, owner)
        if _ended(request.answer):
            live[key].discard(name)
        else:
            live[key].add(name)
            most[key] = max(most[key], len(live[key]))
    return dict(most)


def _changed_job(request: Request) -> dict[str, Any]:
    """The metadata of the Job that a write answered with; empty for any other answer."""
    if request.verb not in ("create", "update", "patch") or request.answer.get("kind") != "Job":
        return {}
    metadata: dict[str, Any] = request.answer["metadata"]
    return metadata


def _ended(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions") or []
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions)
