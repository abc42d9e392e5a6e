"""Requests for pods' logs: which container is meant, and whether it has a log."""

from datetime import datetime

from captfctl.cluster.errors import BadRequest
from captfctl.embedded.apiserver.log_source import LogSource, LogStream
from captfctl.embedded.apiserver.requests import ApiRequest
from captfctl.model.core import ContainerStatus, Pod
from captfctl.model.meta import parse_time


def open_log(source: LogSource, request: ApiRequest, pod: Pod, now: datetime) -> LogStream:
    """The log that a request for `pods/NAME/log` asks for. Raises `BadRequest`."""
    container = _container(pod, request.query.get("container", ""))
    previous = request.flag("previous")
    _refuse_absent(pod, container, previous)
    return source.open(
        pod.metadata.namespace,
        pod.metadata.name,
        container,
        follow=request.flag("follow"),
        tail_lines=request.optional_number("tailLines"),
        since_seconds=_since(request, now),
        timestamps=request.flag("timestamps"),
        limit_bytes=request.optional_number("limitBytes"),
        previous=previous,
    )


def _since(request: ApiRequest, now: datetime) -> int | None:
    text = request.query.get("sinceTime")
    if not text:
        return request.optional_number("sinceSeconds")
    moment = parse_time(text)
    if moment is None:
        raise BadRequest("query parameter sinceTime must be a time in RFC 3339")
    return max(0, int((now - moment).total_seconds()))


def _container(pod: Pod, wanted: str) -> str:
    """The container asked for; the only one, or the annotated default, when none is named."""
    main = [container.name for container in pod.spec.containers]
    names = [container.name for container in pod.spec.init_containers] + main
    if wanted:
        if wanted not in names:
            raise BadRequest(
                f"container {wanted} is not one of pod {pod.metadata.name}: {', '.join(names)}"
            )
        return wanted
    default = pod.metadata.annotations.get("kubectl.kubernetes.io/default-container", "")
    if default in main:
        return default
    if len(main) != 1:
        raise BadRequest(
            f"pod {pod.metadata.name} has several containers, name one of: {', '.join(names)}"
        )
    return main[0]


def _refuse_absent(pod: Pod, container: str, previous: bool) -> None:
    statuses = pod.status.init_container_statuses + pod.status.container_statuses
    status = next((s for s in statuses if s.name == container), ContainerStatus(name=container))
    where = f"container {container} of pod {pod.metadata.name}"
    if previous and not (status.last_state and status.last_state.terminated):
        raise BadRequest(f"there was no previous run of {where}")
    if pod.status.phase in ("", "Pending") and status.state and status.state.waiting:
        raise BadRequest(f"{where} waits to start: {status.state.waiting.reason or 'Waiting'}")
    if not pod.spec.node_name:
        raise BadRequest(f"{where} has no log yet: the pod is not bound to a node")
