"""Creating, changing and deleting, each as one read-check-commit that is repeated when it raced."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from captfctl.cluster.errors import AlreadyExists, ApiError, BadRequest, Cause, NotFound
from captfctl.embedded.store import as_described, deletion, metadata
from captfctl.embedded.store.admission import admit
from captfctl.embedded.store.collection import Record, key_of
from captfctl.embedded.store.engine import Engine, Moved
from captfctl.embedded.store.kinds.pods import bound
from captfctl.embedded.store.objects import Read, convert, decode, encode, read
from captfctl.embedded.store.policies import Request
from captfctl.embedded.store.registry import Served
from captfctl.embedded.store.requests import Deleted, DeleteOptions, WriteOptions, Written
from captfctl.embedded.store.views import shown_body
from captfctl.embedded.store.violations import (
    MODIFIED,
    already_exists,
    conflict,
    invalid,
    not_found,
    not_served,
    refuse,
    refused,
    required,
)
from captfctl.model.resource import Document

Change = Callable[[Document | None], Document]


class _Target(msgspec.Struct):
    name: str | None = None


class _Binding(msgspec.Struct):
    """Of a `v1` Binding, what decides."""

    target: _Target | None = None


_GENERATED_TRIES = 8


def body_of(served: Served, record: Record) -> bytes:
    """The object's JSON in `served`'s version."""
    return shown_body(served.view, record.body, record.views)


def create(
    engine: Engine, served: Served, document: Document, namespace: str, options: WriteOptions
) -> Written:
    """Raises `AlreadyExists`, `BadRequest`, `Invalid`, and `NotFound` or `Forbidden` when nothing
    new can be made in the namespace.
    """
    got = read(served, document, options.field_validation)
    if options.manage:  # what the kind itself fills in below is nobody's
        got = replace(got, document=options.manage(None, got.document))
    meta = got.document["metadata"]
    metadata.place(meta, served.resource.namespaced, namespace)
    if served.resource.namespaced and not meta["namespace"]:
        raise BadRequest("an empty namespace may not be set during creation")
    if meta.get("namespace"):  # before anything is looked at, and again with the write
        named = meta.get("name") or meta.get("generateName", "")
        engine.require_namespace(served, meta["namespace"], named)
    now = engine.now()
    given = None
    if options.as_described:
        given = as_described.take(got.document, with_status=bool(document.get("status")))
    uid = (given.uid if given else "") or metadata.new_uid(engine.chance)
    metadata.prepare_create(meta, now, uid)
    generated = not meta.get("name") and bool(meta.get("generateName"))
    if generated:
        meta["name"] = metadata.generated_name(meta["generateName"], engine.chance)
    served.strategy.prepare_create(got.document, now)
    if given:
        given.put_back(got.document)
    for _ in range(_GENERATED_TRIES if generated else 1):
        try:
            return _create(engine, served, got, options)
        except Moved:
            if generated:
                _rename(engine, served, got.document)
    raise already_exists(served.resource.name, meta["name"])


def _rename(engine: Engine, served: Served, document: Document) -> None:
    """Draw another name, and let the kind put it wherever it put the first."""
    meta = document["metadata"]
    meta["name"] = metadata.generated_name(meta["generateName"], engine.chance)
    served.strategy.prepare_create(document, engine.now())


def _create(engine: Engine, served: Served, got: Read, options: WriteOptions) -> Written:
    document = got.document
    meta = document["metadata"]
    _raise(served, meta, _check(engine, served, document, None, ""))
    warnings = got.warnings + admit(
        engine,
        Request(
            served=served,
            operation="CREATE",
            name=meta["name"],
            namespace=meta.get("namespace", ""),
            object=document,
            old=None,
            user=options.user,
            dry_run=options.dry_run,
        ),
    )
    if options.dry_run:
        key = key_of(meta.get("namespace", ""), meta["name"])
        if key in engine.collection(served).records:
            raise Moved
        if meta.get("namespace"):
            engine.require_namespace(served, meta["namespace"], meta["name"])
        return Written(body=encode(document), resource_version="", created=True, warnings=warnings)
    record = engine.commit(served, None, document)
    return Written(
        body=body_of(served, record),
        resource_version=str(record.version),
        created=True,
        warnings=warnings,
    )


def _check(
    engine: Engine, served: Served, document: Document, old: Document | None, subresource: str
) -> list[Cause]:
    strategy, meta = served.strategy, document["metadata"]
    causes = metadata.check(meta, strategy.name_rule) if old is None else []
    if old is not None:
        causes += metadata.check_update(meta, old["metadata"])
        if meta != old["metadata"]:
            causes += metadata.check(meta, strategy.name_rule)
    causes = as_described.excused(engine, meta, causes) if causes else []
    return causes + strategy.check(document, old, subresource)


def _raise(served: Served, meta: Document, causes: list[Cause]) -> None:
    if causes:
        resource = served.resource
        raise refuse(resource.kind, resource.group, meta.get("name", ""), causes)


def modify(
    engine: Engine,
    served: Served,
    name: str,
    namespace: str,
    change: Change,
    options: WriteOptions,
    *,
    subresource: str,
    create_absent: bool,
) -> Written:
    """Store what `change` makes of the object; it is asked again when another write came between.

    `create_absent`: `change` gets None for an object that does not exist, and makes it. Raises
    `NotFound`, `Conflict` and `Invalid`, and what `change` raises.
    """
    strategy = served.strategy
    known = strategy.subresources | ({"status"} if strategy.has_status else set())
    if subresource and subresource not in known:
        raise not_served()
    key = key_of(namespace if served.resource.namespaced else "", name)
    while True:
        before = engine.collection(served).records.get(key)
        try:
            if before is not None:
                return _modify(engine, served, before, change, options, subresource)
            if not create_absent:
                raise not_found(served.resource.name, name)
            return _create_absent(engine, served, name, namespace, change, options)
        except Moved:
            continue


def _create_absent(
    engine: Engine,
    served: Served,
    name: str,
    namespace: str,
    change: Change,
    options: WriteOptions,
) -> Written:
    document = change(None)
    _same_name(document, name)
    meta = document.setdefault("metadata", {})
    meta.setdefault("name", name)
    if meta.get("uid"):
        reason = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: "
        raise conflict(served.resource.name, name, reason)
    if meta.get("resourceVersion"):
        raise conflict(served.resource.name, name, MODIFIED)
    try:
        return create(engine, served, document, namespace, options)
    except AlreadyExists:
        raise Moved from None


def _modify(
    engine: Engine,
    served: Served,
    before: Record,
    change: Change,
    options: WriteOptions,
    subresource: str,
) -> Written:
    body = body_of(served, before)
    old = decode(body)
    wanted = change(decode(body))
    _same_name(wanted, before.name)
    keeps_managers = "managedFields" in (wanted.get("metadata") or {})
    got = read(served, wanted, options.field_validation)
    document, meta = got.document, got.document["metadata"]
    _preconditions(served, before, meta)
    if not keeps_managers and "managedFields" in old["metadata"]:
        meta["managedFields"] = old["metadata"]["managedFields"]
    metadata.place(meta, served.resource.namespaced, before.namespace)
    metadata.prepare_update(meta, old["metadata"])
    meta["resourceVersion"] = old["metadata"]["resourceVersion"]
    document = served.strategy.prepare_update(document, old, subresource)
    if options.manage:
        document = options.manage(old, document)
        meta = document["metadata"]
    _raise(served, meta, _check(engine, served, document, old, subresource))
    request = Request(
        served=served,
        operation="UPDATE",
        name=before.name,
        namespace=before.namespace,
        object=document,
        old=old,
        user=options.user,
        subresource=subresource,
        dry_run=options.dry_run,
    )
    warnings = got.warnings + admit(engine, request)
    unchanged = document == old
    if options.dry_run or unchanged:
        answer = body if unchanged else encode(document)
        return Written(body=answer, resource_version=str(before.version), warnings=warnings)
    if deletion.finished(document, old, served.strategy):
        last = engine.remove(served, before)
        return Written(body=encode(document), resource_version=str(last.version), warnings=warnings)
    record = engine.commit(served, before, document)
    return Written(
        body=body_of(served, record),
        resource_version=str(record.version),
        warnings=warnings,
    )


def bind(engine: Engine, served: Served, name: str, namespace: str, binding: Document) -> Record:
    """Assign a pod to a node. Raises `Conflict` when it is assigned or ending."""
    target = convert(binding, _Binding).target
    node = target.name if target else ""
    if not node:
        raise refuse("Binding", "", name, [required("target.name")])
    while True:
        before = engine.collection(served).records.get(key_of(namespace, name))
        if before is None:
            raise not_found(served.resource.name, name)
        try:
            return engine.commit(served, before, bound(decode(before.body), node, engine.now()))
        except Moved:
            continue


def name_of(body: bytes) -> tuple[str, str]:
    """Namespace and name in an object's JSON; the namespace is empty where there is none."""
    metadata: Document = decode(body)["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _same_name(document: Document, name: str) -> None:
    found = (document.get("metadata") or {}).get("name") or name
    if found != name:
        raise BadRequest(
            f"the name of the object ({found}) does not match the name on the URL ({name})"
        )


def _preconditions(served: Served, before: Record, meta: Document) -> None:
    """Raises `Conflict` or `Invalid`."""
    resource = served.resource
    uid, version = meta.get("uid"), meta.get("resourceVersion")
    if uid and uid != before.uid:
        reason = (
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before.uid}"
        )
        raise conflict(resource.name, before.name, reason)
    if version and version != str(before.version):
        raise conflict(resource.name, before.name, MODIFIED)
    if not version and not served.strategy.unconditional_update:
        cause = invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise refuse(resource.kind, resource.group, before.name, [cause])


def delete(
    engine: Engine, served: Served, name: str, namespace: str, options: DeleteOptions
) -> Deleted:
    """Remove the object, or mark it as deleted while finalizers hold it.

    Raises `NotFound`, `Forbidden`, and `Conflict` when the preconditions name another one.
    """
    if reason := served.strategy.refuses_delete(name):
        raise refused(served.resource.name, name, reason)
    key = key_of(namespace if served.resource.namespaced else "", name)
    while True:
        before = engine.collection(served).records.get(key)
        if before is None:
            raise not_found(served.resource.name, name)
        try:
            return _delete(engine, served, before, options)
        except Moved:
            continue


def _delete(engine: Engine, served: Served, before: Record, options: DeleteOptions) -> Deleted:
    plan = _planned(engine, served, before, options)
    body = body_of(served, before)
    gone = plan.step is deletion.Step.REMOVE
    if gone and not options.dry_run:
        body = body_of(served, engine.remove(served, before))
    elif not gone and plan.document != decode(body):
        if options.dry_run:
            body = encode(plan.document)
        else:
            body = body_of(served, engine.commit(served, before, plan.document))
    return Deleted(body=body, uid=before.uid, gone=gone)


def _planned(
    engine: Engine, served: Served, before: Record, options: DeleteOptions
) -> deletion.Plan:
    """What deleting the object comes to, once that is allowed."""
    document = decode(body_of(served, before))
    deletion.check_preconditions(served.resource.name, before.name, document["metadata"], options)
    admit(
        engine,
        Request(
            served=served,
            operation="DELETE",
            name=before.name,
            namespace=before.namespace,
            object=None,
            old=document,
            user=options.user,
            dry_run=options.dry_run,
        ),
    )
    return deletion.plan(document, options, served.strategy, engine.now())


def delete_all(
    engine: Engine, served: Served, names: Sequence[tuple[str, str]], options: DeleteOptions
) -> None:
    """Delete objects, by namespace and name, in one transaction; those that are gone are no error.

    Raises what deleting one of them does: those before it are deleted then.
    """
    refusal: ApiError | None = None
    changes: list[tuple[Record, Document | None]] = []
    for namespace, name in names:
        before = engine.collection(served).records.get(key_of(namespace, name))
        if before is None:
            continue
        try:
            if reason := served.strategy.refuses_delete(name):
                raise refused(served.resource.name, name, reason)
            plan = _planned(engine, served, before, options)
        except ApiError as error:
            refusal = error
            break
        gone = plan.step is deletion.Step.REMOVE
        if gone or plan.document != decode(body_of(served, before)):
            changes.append((before, None if gone else plan.document))
    if not options.dry_run:
        for moved in engine.replace_all(served, changes):
            with contextlib.suppress(NotFound):
                delete(engine, served, moved.name, moved.namespace, options)
    if refusal is not None:
        raise refusal
