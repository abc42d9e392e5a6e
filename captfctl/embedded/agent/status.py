"""What a pod's status says, built from what is known about its containers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from captfctl.embedded.supervisor.records import LOG, Ended
from captfctl.model.core import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
)
from captfctl.model.meta import Time, whole_seconds

MESSAGE_MAX = 4096
"""Bytes of a termination message, as a kubelet keeps."""

_LOG_MESSAGE_MAX = 2048
_LOG_MESSAGE_LINES = 80


class PodPhase(StrEnum):
    """The phases of a pod that the agent writes."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


TERMINAL = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


@dataclass
class Known:
    """What is known about one container."""

    waiting: str = "PodInitializing"
    waiting_message: str = ""
    image_id: str = ""
    running_since: float | None = None
    ended: Ended | None = None
    message: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether it ended with exit code 0 by itself."""
        return self.ended is not None and self.ended.exit_code == 0 and not self.ended.reason


@dataclass
class Facts:
    """What is known about a pod. `reason` and `message` tell why the agent ended it."""

    started_at: float
    containers: dict[str, Known] = field(default_factory=dict)
    phase: PodPhase = PodPhase.PENDING
    reason: str = ""
    message: str = ""
    node_ip: str = ""


def moment(seconds: float) -> Time:
    """A Unix time as API objects hold it, in whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC)


def build(pod: Pod, facts: Facts, now: datetime) -> PodStatus:
    """The whole status. Conditions that are not ours stay as they are."""
    init = [_container(c, facts, pod) for c in pod.spec.init_containers]
    main = [_container(c, facts, pod) for c in pod.spec.containers]
    return PodStatus(
        phase=facts.phase,
        reason=facts.reason,
        message=facts.message,
        host_ip=facts.node_ip,
        pod_ip=facts.node_ip if facts.phase != PodPhase.PENDING else "",
        start_time=moment(facts.started_at),
        conditions=_conditions(pod, facts, now),
        init_container_statuses=init,
        container_statuses=main,
    )


def _container(container: Container, facts: Facts, pod: Pod) -> ContainerStatus:
    known = facts.containers.get(container.name, Known())
    container_id = f"captf://{pod.metadata.uid}/{container.name}"
    status = ContainerStatus(
        name=container.name, image=container.image, image_id=known.image_id, restart_count=0
    )
    if known.ended is not None:
        status.container_id = container_id
        status.started = False
        status.ready = known.succeeded and container in pod.spec.init_containers
        status.state = ContainerState(terminated=_terminated(known, known.ended, container_id))
    elif known.running_since is not None:
        status.container_id = container_id
        status.started = status.ready = True
        status.state = ContainerState(
            running=ContainerStateRunning(started_at=moment(known.running_since))
        )
    else:
        status.started = False
        waiting = ContainerStateWaiting(reason=known.waiting, message=known.waiting_message)
        status.state = ContainerState(waiting=waiting)
    return status


def _terminated(known: Known, ended: Ended, container_id: str) -> ContainerStateTerminated:
    reason = ended.reason or ("Completed" if ended.exit_code == 0 else "Error")
    return ContainerStateTerminated(
        exit_code=ended.exit_code,
        signal=ended.signal,
        reason=reason,
        message=known.message or ended.message,
        started_at=moment(ended.started_at) if ended.started_at else None,
        finished_at=moment(ended.finished_at),
        container_id=container_id,
    )


def _conditions(pod: Pod, facts: Facts, now: datetime) -> list[PodCondition]:
    known = facts.containers
    initialized = all(known.get(c.name, Known()).succeeded for c in pod.spec.init_containers)
    running = facts.phase == PodPhase.RUNNING
    if running:
        idle = ""
    elif facts.phase == PodPhase.SUCCEEDED:
        idle = "PodCompleted"
    elif facts.phase == PodPhase.FAILED:
        idle = "PodFailed"
    else:
        idle = "ContainersNotReady"
    wanted: Mapping[str, tuple[bool, str]] = {
        "PodReadyToStartContainers": (facts.phase not in TERMINAL, ""),
        "Initialized": (
            initialized,
            "" if initialized else "ContainersNotInitialized",
        ),
        "Ready": (running, idle),
        "ContainersReady": (running, idle),
        "PodScheduled": (True, ""),
    }
    return [
        *(c for c in pod.status.conditions if c.type not in wanted),
        *(_condition(pod, kind, *value, now) for kind, value in wanted.items()),
    ]


def _condition(pod: Pod, kind: str, holds: bool, reason: str, now: datetime) -> PodCondition:
    status = "True" if holds else "False"
    old = next((c for c in pod.status.conditions if c.type == kind), None)
    moved = old is None or old.status != status
    since = whole_seconds(now) if moved or old is None else old.last_transition_time
    return PodCondition(type=kind, status=status, reason=reason, last_transition_time=since)


def termination_message(container: Container, ended: Ended, file: Path, directory: Path) -> str:
    """What the container left in its termination file; the end of its log when it failed without
    leaving any and asked for that (`FallbackToLogsOnError`).
    """
    try:
        with file.open("rb") as source:
            raw = source.read(MESSAGE_MAX)
    except OSError:
        raw = b""
    wants_log = container.termination_message_policy == "FallbackToLogsOnError"
    if not raw and wants_log and ended.exit_code != 0:
        raw = _tail(directory / LOG)
    return raw.decode(errors="replace")


def _tail(log: Path) -> bytes:
    try:
        rows = log.read_bytes().splitlines()[-_LOG_MESSAGE_LINES:]
    except OSError:
        return b""
    return b"\n".join(row.split(b" ", 3)[3] for row in rows if row.count(b" ") >= 3)[
        -_LOG_MESSAGE_MAX:
    ]
