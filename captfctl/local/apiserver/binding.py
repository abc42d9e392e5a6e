"""Binding a pod to a node (`pods/NAME/binding`), as schedulers do."""

from datetime import UTC, datetime

from captfctl.cluster.errors import BadRequest, Conflict
from captfctl.cluster.store import EmbeddedStore, Served
from captfctl.local.apiserver.replies import Reply, Status
from captfctl.local.apiserver.requests import ApiRequest, Target
from captfctl.model.resource import Document

SCHEDULED = "PodScheduled"


def answer(
    store: EmbeddedStore, served: Served, request: ApiRequest, target: Target, now: datetime
) -> Reply:
    """Raises `Conflict` when the pod is bound already or being deleted."""
    binding = request.document()
    node = (binding.get("target") or {}).get("name")
    if not node:
        raise BadRequest("a binding names its node in target.name")

    def bind(live: Document | None) -> Document:
        assert live is not None  # only an existing pod is bound
        if live["metadata"].get("deletionTimestamp"):
            raise Conflict(f"pod {target.name} is being deleted")
        if live["spec"].get("nodeName"):
            raise Conflict(f"pod {target.name} is already bound to node {live['spec']['nodeName']}")
        return {**live, "spec": {**live["spec"], "nodeName": node}}

    def scheduled(live: Document | None) -> Document:
        assert live is not None
        status = live.get("status") or {}
        others = [c for c in status.get("conditions") or () if c.get("type") != SCHEDULED]
        moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": SCHEDULED, "status": "True", "lastTransitionTime": moment}
        return {**live, "status": {**status, "conditions": [*others, condition]}}

    store.modify(served, target.name, target.namespace, bind)
    store.modify(served, target.name, target.namespace, scheduled, subresource="status")
    return Reply(Status(status="Success", code=201).encode(), 201)
