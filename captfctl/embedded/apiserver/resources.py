"""What the API does with objects: one method for each verb, over the store."""

from collections.abc import Callable
from dataclasses import replace

from captfctl.clock import Clock
from captfctl.cluster.errors import (
    BadRequest,
    MethodNotAllowed,
    NotFound,
    UnsupportedMediaType,
)
from captfctl.embedded.apiserver.apply import FieldManager, field_manager, settled
from captfctl.embedded.apiserver.json_patch import json_patch
from captfctl.embedded.apiserver.replies import (
    JSON,
    Reply,
    Subject,
    json_reply,
    success,
    warning_headers,
)
from captfctl.embedded.apiserver.requests import ApiRequest, Form, Target
from captfctl.embedded.apiserver.strategic import strategic_merge
from captfctl.embedded.apiserver.tables import partial, partial_list, raw_list, table
from captfctl.embedded.store import EmbeddedStore, Served, Written, merge_patch
from captfctl.embedded.store.violations import forbidden, required
from captfctl.model.resource import Document

_CREATED_BY_UPDATE = frozenset({"leases.coordination.k8s.io", "events"})
"""A PUT creates these when they are not there."""

_SHOWN_WHEN_DELETED = frozenset({"pods", "serviceaccounts"})
"""A delete answers with the object itself, not with a Status."""

_COLLECTIONS = ("labels", "annotations", "ownerReferences", "finalizers")

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Resources:
    """Answers requests for stored objects. Every method may be called from any thread."""

    def __init__(self, store: EmbeddedStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def answer(self, request: ApiRequest, served: Served, target: Target) -> Reply:
        """Raises the errors of `captfctl.cluster.errors`."""
        if request.method == "POST" and target.subresource:
            return self.create_subresource(request, served, target)
        status = {"status"} if served.status else set()
        if target.subresource not in {"", *status, *served.strategy.subresources}:
            raise NotFound(f"{target.plural} have no subresource {target.subresource}")
        match request.method, bool(target.name):
            case "GET", True:
                return self.get(request, served, target)
            case "GET", False:
                return self.list(request, served, target)
            case "POST", False:
                return self.create(request, served, target)
            case "PUT", True:
                return self.update(request, served, target)
            case "PATCH", True:
                return self.patch(request, served, target)
            case "DELETE", True if not target.subresource:
                return self.delete(request, served, target)
            case "DELETE", False if served.strategy.deletes_collections:
                return self.delete_collection(request, served, target)
        raise MethodNotAllowed(f"{request.method} is not possible for {request.path}")

    def get(self, request: ApiRequest, served: Served, target: Target) -> Reply:
        """One object."""
        self._store.require_version(request.query.get("resourceVersion", ""))
        return self._object(request, served, self._store.get(served, target.name, target.namespace))

    def list(self, request: ApiRequest, served: Served, target: Target) -> Reply:
        """The objects that the request selects."""
        page = self._store.list(served, target.namespace, request.list_options())
        match request.accepted.form:
            case Form.TABLE:
                return Reply(
                    table(
                        served,
                        page.items,
                        self._clock.now(),
                        include=request.include,
                        resource_version=page.resource_version,
                        continue_token=page.continue_token,
                        remaining=page.remaining,
                    )
                )
            case Form.PARTIAL_LIST | Form.PARTIAL:
                return Reply(partial_list(page))
        return Reply(raw_list(served, page))

    def create(self, request: ApiRequest, served: Served, target: Target) -> Reply:
        """Store the object in the body as a new one."""
        document = self._incoming(request.document(), served, target)
        if served.resource.namespaced and not target.namespace:
            raise BadRequest(f"{target.plural} are created in a namespace")
        manage = self._manager(request, served, target).track
        options = replace(request.write_options(), manage=manage)
        written = self._store.create(served, document, target.namespace, options)
        return self._written(request, served, written, created=True)

    def create_subresource(self, request: ApiRequest, served: Served, target: Target) -> Reply:
        """A binding, a token request."""
        made = self._store.create_subresource(
            served, target.name, target.namespace, target.subresource, request.document()
        )
        return json_reply(made, 201)

    def update(self, request: ApiRequest, served: Served, target: Target) -> Reply:
        """Store the object in the body in place of the present one."""
        body = request.document()
        _require_name(body, target.name)
        document = self._incoming(body, served, target)
        manager = self._manager(request, served, target)
        create = served.resource.name in _CREATED_BY_UPDATE and not target.subresource

        def change(_: Document | None) -> Document:
            return document

        return self._modify(request, served, target, change, manager.track, create=create)

    def patch(self, request: ApiRequest, served: Served, target: Target) -> Reply:
        """Change an object as the body says, by the patch type of its content type."""
        if request.content_type == APPLY:
            return self._apply(request, served, target)
        if "force" in request.query:
            cause = forbidden("force", "may not be specified for non-apply patch")
            raise request.invalid_options(cause)
        patched = self._patcher(request, served)
        manager = self._manager(request, served, target)

        def change(live: Document | None) -> Document:
            assert live is not None  # the store creates nothing unless it is told to
            new = patched(live)
            self._check_identity(new, served, target)
            return new

        return self._modify(request, served, target, change, manager.track)

    def delete(self, request: ApiRequest, served: Served, target: Target) -> Reply:
        """Delete one object."""
        options = request.delete_options()
        deleted = self._store.delete(served, target.name, target.namespace, options)
        if deleted.gone and served.resource.name not in _SHOWN_WHEN_DELETED:
            return success(Subject.of(target), deleted.uid)
        return self._object(request, served, deleted.body)

    def delete_collection(self, request: ApiRequest, served: Served, target: Target) -> Reply:
        """Delete the objects that the request selects."""
        page = self._store.delete_collection(
            served, target.namespace, request.list_options(), request.delete_options()
        )
        return Reply(raw_list(served, page))

    def _apply(self, request: ApiRequest, served: Served, target: Target) -> Reply:
        if not request.query.get("fieldManager"):
            cause = required("fieldManager", "is required for apply patch")
            raise request.invalid_options(cause)
        body = request.patch_object()
        _require_type(body, served)
        applied = self._incoming(body, served, target)
        manager = self._manager(request, served, target)
        force = request.flag("force")

        def change(live: Document | None) -> Document:
            return manager.apply(live, applied, force=force)

        return self._modify(request, served, target, change, settled, create=not target.subresource)

    def _patcher(self, request: ApiRequest, served: Served) -> Callable[[Document], Document]:
        """What the body asks to do to an object. Raises `UnsupportedMediaType`, `BadRequest`."""
        media = request.content_type
        if media == MERGE:
            merge = request.patch_object()
            return lambda live: dict(merge_patch(live, merge))
        if media == JSON_PATCH:
            operations = request.patch()
            return lambda live: json_patch(live, operations)
        if media == STRATEGIC and not served.custom:
            strategic = request.patch_object()
            return lambda live: strategic_merge(live, strategic, served.schema)
        known = [JSON_PATCH, MERGE, APPLY, *([] if served.custom else [STRATEGIC])]
        raise UnsupportedMediaType(
            f"a patch of {served.resource.name} cannot have the content type {media or 'none'}",
            why=f"use one of: {', '.join(known)}",
        )

    def _manager(self, request: ApiRequest, served: Served, target: Target) -> FieldManager:
        now = self._clock.now()
        return field_manager(served, request.manager, now, target.subresource)

    def _modify(
        self,
        request: ApiRequest,
        served: Served,
        target: Target,
        change: Callable[[Document | None], Document],
        manage: Callable[[Document | None, Document], Document],
        *,
        create: bool = False,
    ) -> Reply:
        written = self._store.modify(
            served,
            target.name,
            target.namespace,
            change,
            replace(request.write_options(), manage=manage),
            subresource=target.subresource,
            create=create,
        )
        return self._written(request, served, written, created=written.created)

    def _written(
        self, request: ApiRequest, served: Served, written: Written, *, created: bool
    ) -> Reply:
        headers = warning_headers(written.warnings)
        return self._object(request, served, written.body, 201 if created else 200, headers)

    def _object(
        self,
        request: ApiRequest,
        served: Served,
        body: bytes,
        status: int = 200,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Reply:
        """One object, in the form that the request accepts."""
        if request.accepted.form is Form.TABLE:
            body = table(served, [body], self._clock.now(), include=request.include)
        elif request.accepted.form.partial:
            body = partial(body)
        return Reply(body, status, JSON, headers)

    def _incoming(self, document: Document, served: Served, target: Target) -> Document:
        """The object of a request, proven to be what the path names, with its namespace."""
        resource = served.resource
        if served.custom:  # of its own kinds the server knows what a path means
            _require_type(document, served)
        document["apiVersion"] = document.get("apiVersion") or resource.api_version
        document["kind"] = document.get("kind") or resource.kind
        if document.get("metadata") is None:
            document["metadata"] = {}
        metadata = document["metadata"]
        if not isinstance(metadata, dict):
            raise BadRequest("metadata must be an object")
        for key in _COLLECTIONS:  # empty and absent are the same
            if not metadata.get(key, True):
                del metadata[key]
        if resource.namespaced and target.namespace:
            metadata.setdefault("namespace", target.namespace)
        if target.name:
            metadata.setdefault("name", target.name)
        self._check_identity(document, served, target)
        return document

    def _check_identity(self, document: Document, served: Served, target: Target) -> None:
        """Raises `BadRequest` when an object is not what the path names."""
        resource = served.resource
        metadata = document.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise BadRequest("metadata must be an object")
        kind = f"{document.get('kind')} in {document.get('apiVersion')}"
        if kind != f"{resource.kind} in {resource.api_version}":
            raise BadRequest(
                f"the object is a {kind}, the path is for {resource.kind} in {resource.api_version}"
            )
        if target.name and metadata.get("name") != target.name:
            raise BadRequest(
                f"the object is named {metadata.get('name')}, the path names {target.name}"
            )
        namespace = metadata.get("namespace") or ""
        if resource.namespaced and target.namespace and namespace != target.namespace:
            raise BadRequest(
                f"the object is in namespace {namespace}, the path in {target.namespace}"
            )


def _require_type(document: Document, served: Served) -> None:
    """Raises `BadRequest` for an object that does not say what it is."""
    for field in ("apiVersion", "kind"):
        if not document.get(field):
            raise BadRequest(
                f"the object provided is unrecognized (must be of type {served.resource.kind}): "
                f"{field} is missing"
            )


def _require_name(document: Document, name: str) -> None:
    """Raises `BadRequest` for a replacement without a name."""
    metadata = document.get("metadata") or {}
    if isinstance(metadata, dict) and not metadata.get("name"):
        raise BadRequest(
            f"the name of the object ({name} based on URL) was undeterminable: "
            "name must be provided"
        )
