"""Writing a pod's status and events."""

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from captfctl.backoff import doubled
from captfctl.cluster.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from captfctl.embedded.agent.context import Node
from captfctl.embedded.agent.status import Facts, build
from captfctl.model.core import ObjectReference, Pod
from captfctl.model.resources import PODS

_FIRST_RETRY = 0.2
_LAST_RETRY = 10.0

log = logging.getLogger(__name__)


class Gone(Exception):
    """The pod object is gone, or another one has its name."""


class Reporter:
    """`pod` is the newest version known; `facts` are the worker's."""

    def __init__(self, node: Node, pod: Pod, facts: Facts) -> None:
        self.pod = pod
        self._node = node
        self._facts = facts
        self._reference = ObjectReference(
            api_version=PODS.api_version,
            kind=PODS.kind,
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            uid=pod.metadata.uid,
        )
        self._last: Any = None

    def event(self, reason: str, note: str) -> None:
        """Post a Normal event about the pod."""
        self._node.events.normal(self._reference, reason, note, "Run")

    def warn(self, reason: str, note: str) -> None:
        """Post a Warning event about the pod."""
        self._node.events.warning(self._reference, reason, note, "Run")

    def report(self, wait: Callable[[float], None]) -> None:
        """Write the status until it is written; `wait` waits between attempts and may raise.

        Raises `Gone`.
        """
        self._insist(self.try_report, wait)

    def try_report(self) -> bool:
        """Write the status, once; tell whether it stands. Raises `Gone`."""
        body = msgspec.to_builtins(build(self.pod, self._facts, self._node.clock.now()))
        body.setdefault("reason", None)
        body.setdefault("message", None)
        if body == self._last:
            return True
        if not self._try(lambda: self._patch({"status": body}, "status")):
            return False
        self._last = body
        return True

    def try_annotate(self, annotations: dict[str, str]) -> bool:
        """Write annotations that the pod does not have yet, once. Raises `Gone`."""
        has = self.pod.metadata.annotations
        missing = {key: value for key, value in annotations.items() if has.get(key) != value}
        if not missing:
            return True
        return self._try(lambda: self._patch({"metadata": {"annotations": missing}}, ""))

    def release(self, wait: Callable[[float], None]) -> None:
        """The pod has ended and is being deleted: let the API server remove it now.

        Raises `Gone` when it already is.
        """
        metadata = self.pod.metadata

        def delete() -> None:
            self._node.door.delete(
                PODS, metadata.name, metadata.namespace, uid=metadata.uid, grace_period_seconds=0
            )

        self._insist(lambda: self._try(delete), wait)

    def _insist(self, attempt: Callable[[], bool], wait: Callable[[float], None]) -> None:
        failures = 0
        while not attempt():
            wait(doubled(_FIRST_RETRY, failures, _LAST_RETRY))
            failures += 1

    def _patch(self, patch: dict[str, Any], subresource: str) -> None:
        metadata = self.pod.metadata
        patch = {**patch, "metadata": {**patch.get("metadata", {}), "uid": metadata.uid}}
        self._node.door.patch(
            PODS, metadata.name, metadata.namespace, patch, subresource=subresource
        )

    def _try(self, write: Callable[[], object]) -> bool:
        """False when it is worth trying again. Raises `Gone`."""
        name = self.pod.metadata.name
        try:
            write()
        except NotFound:
            raise Gone from None
        except (Conflict, Invalid, Forbidden) as problem:
            if not self._still_there():
                raise Gone from None
            log.warning("pod %s: refused: %s", name, problem)
            return not isinstance(problem, Conflict)
        except ApiError as problem:
            log.info("pod %s: not written: %s", name, problem)
            return False
        return True

    def _still_there(self) -> bool:
        metadata = self.pod.metadata
        try:
            found = self._node.door.get(PODS, metadata.name, metadata.namespace)
        except NotFound:
            return False
        except ApiError:
            return True
        return found.metadata.uid == metadata.uid
