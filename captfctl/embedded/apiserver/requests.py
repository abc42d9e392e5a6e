"""One HTTP request, taken apart: which resource, which object, which options, which answer form."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec

from captfctl.cluster.door import Propagation
from captfctl.cluster.errors import ApiError, BadRequest, Cause, NotFound
from captfctl.embedded.apiserver import bodies
from captfctl.embedded.apiserver.auth import Identity, user_info
from captfctl.embedded.apiserver.list_rules import list_causes, watch_causes
from captfctl.embedded.apiserver.refusals import InvalidOptions, NotAcceptable
from captfctl.embedded.apiserver.tables import IncludeObject
from captfctl.embedded.store import (
    DeleteOptions,
    FieldValidation,
    ListOptions,
    WatchOptions,
    WriteOptions,
)
from captfctl.embedded.store.objects import convert
from captfctl.embedded.store.violations import unsupported
from captfctl.model.resource import Document

MAX_MANAGER = 128
_NUMBER = re.compile(r"[0-9]{1,18}")
OPTIONS = {
    "POST": "CreateOptions",
    "PUT": "UpdateOptions",
    "PATCH": "PatchOptions",
    "DELETE": "DeleteOptions",
}


@dataclass(frozen=True, slots=True)
class Target:
    """What a path below `/api/v1` or `/apis/GROUP/VERSION` names. Empty: not given."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_target(path: str) -> Target | None:
    """None for a path that is no resource's: discovery, health and the like.

    `/api/v1/namespaces/NAME` is the Namespace itself, and so are its `status` and `finalize`.
    """
    parts = [part for part in path.split("/") if part]
    if len(parts) > 2 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) > 3 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    of_namespace = len(rest) == 3 and rest[2] in ("status", "finalize")
    if rest[0] == "namespaces" and len(rest) > 2 and not (not group and of_namespace):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return Target(group, version, plural, namespace, name, subresource)


class Form(Enum):
    """How the answer is wanted (`Accept`)."""

    PLAIN = "plain"
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"

    @property
    def partial(self) -> bool:
        """Whether metadata only is wanted."""
        return self in (Form.PARTIAL, Form.PARTIAL_LIST)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The first form in an Accept header that the server can make. `version` is of the form."""

    form: Form
    version: str = ""
    media: str = bodies.JSON


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptions(msgspec.Struct, rename="camel"):
    """The body of a delete."""

    kind: str | None = None
    grace_period_seconds: int | None = None
    preconditions: _Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None


JSON_TYPES = frozenset({"application/json", "application/yaml", "application/*", "*/*", ""})


def parse_accept(header: str, *, also: str = "") -> Accepted:
    """`also`: a media type that can be made beside JSON.

    Raises `NotAcceptable` when nothing in the header can be made.
    """
    for entry in (header or "*/*").split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        if also and media == also:
            return Accepted(Form.PLAIN, media=also)
        if media not in JSON_TYPES:
            continue
        given = dict(part.partition("=")[::2] for part in parameters)
        wanted = given.get("as", "")
        if not wanted:
            return Accepted(Form.PLAIN)
        known = {form.value: form for form in Form if form is not Form.PLAIN}.get(wanted)
        if known is not None:
            return Accepted(known, given.get("v", ""))
    raise NotAcceptable("only JSON can be had here", do="accept application/json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    identity: Identity
    accepted: Accepted = field(default=Accepted(Form.PLAIN))

    @property
    def content_type(self) -> str:
        """The media type of the body, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def manager(self) -> str:
        """The field manager: as asked for, else the client program's name."""
        agent = self.headers.get("user-agent", "").partition("/")[0]
        return (self.query.get("fieldManager") or agent or "unknown")[:MAX_MANAGER]

    @property
    def include(self) -> IncludeObject:
        """What of its object each row of a table holds."""
        try:
            return IncludeObject(self.query.get("includeObject") or "Metadata")
        except ValueError:
            raise BadRequest("includeObject is None, Metadata or Object") from None

    def flag(self, name: str) -> bool:
        """A query parameter that is true or false."""
        """Whether a parameter is there and does not say no: how Kubernetes reads them."""
        return name in self.query and self.query[name].lower() not in ("0", "false")

    def number(self, name: str) -> int:
        """A query parameter that is a number of at least 0; 0 when absent."""
        text = self.query.get(name) or "0"
        if not _NUMBER.fullmatch(text):
            raise BadRequest(f"query parameter {name} must be a number that is not negative")
        return int(text)

    def optional_number(self, name: str) -> int | None:
        """A query parameter that is a number of at least 0; None when absent."""
        return self.number(name) if self.query.get(name) else None

    def invalid_options(self, *causes: Cause) -> InvalidOptions:
        """The error for wrong options of this request."""
        return InvalidOptions(OPTIONS.get(self.method, "ListOptions"), causes)

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be stored."""
        wanted = self.query.get("dryRun", "")
        if wanted not in ("", "All"):
            raise self.invalid_options(unsupported("dryRun", wanted, ("All",)))
        return wanted == "All"

    def write_options(self) -> WriteOptions:
        """The options of a create or a change."""
        wanted = self.query.get("fieldValidation") or FieldValidation.WARN
        try:
            validation = FieldValidation(wanted)
        except ValueError:
            cause = unsupported("fieldValidation", wanted, FieldValidation)
            raise self.invalid_options(cause) from None
        return WriteOptions(
            dry_run=self.dry_run, field_validation=validation, user=user_info(self.identity)
        )

    def list_options(self, name: str = "") -> ListOptions:
        """The options of a list. `name` restricts it to one object."""
        if causes := tuple(list_causes(self.query)):
            raise self.invalid_options(*causes)
        return ListOptions(
            labels=self.query.get("labelSelector", ""),
            fields=self._fields(name),
            limit=self._limit,
            continue_token=self.query.get("continue", ""),
            resource_version=self.query.get("resourceVersion", ""),
            resource_version_match=self.query.get("resourceVersionMatch", ""),
        )

    @property
    def _limit(self) -> int:
        """Below 0 is no limit, like 0."""
        return 0 if self.query.get("limit", "").startswith("-") else self.number("limit")

    def watch_options(self, name: str = "") -> WatchOptions:
        """The options of a watch. `name` restricts it to one object."""
        if causes := tuple(watch_causes(self.query)):
            raise self.invalid_options(*causes)
        return WatchOptions(
            labels=self.query.get("labelSelector", ""),
            fields=self._fields(name),
            resource_version=self.query.get("resourceVersion", ""),
            timeout_seconds=self.number("timeoutSeconds"),
            bookmarks=self.flag("allowWatchBookmarks"),
            send_initial_events=self.flag("sendInitialEvents"),
        )

    def _fields(self, name: str) -> str:
        given = self.query.get("fieldSelector", "")
        return ",".join(filter(None, (f"metadata.name={name}" if name else "", given)))

    @property
    def is_watch(self) -> bool:
        """Whether a list is to be followed by its changes."""
        return self.method == "GET" and self.flag("watch")

    def delete_options(self) -> DeleteOptions:
        """From the body (a `DeleteOptions` object), else from the query."""
        given = convert(self.document() if self.body.strip() else {}, _DeleteOptions)
        if given.kind not in (None, "", "DeleteOptions"):
            raise BadRequest(f"the body of a delete is a DeleteOptions, not a {given.kind}")
        if given.dry_run and set(given.dry_run) != {"All"}:
            raise self.invalid_options(unsupported("dryRun", given.dry_run, ("All",)))
        grace = given.grace_period_seconds
        if grace is None:
            grace = self.optional_number("gracePeriodSeconds")
        propagation = given.propagation_policy or self.query.get("propagationPolicy")
        orphan = given.orphan_dependents
        if orphan is None and "orphanDependents" in self.query:
            orphan = self.flag("orphanDependents")
        if orphan is not None and not propagation:
            propagation = Propagation.ORPHAN if orphan else Propagation.BACKGROUND
        conditions = given.preconditions or _Preconditions()
        try:
            return DeleteOptions(
                uid=conditions.uid or "",
                resource_version=conditions.resource_version or "",
                propagation=Propagation(propagation) if propagation else None,
                grace_period_seconds=grace,
                dry_run=bool(given.dry_run) or self.dry_run,
                user=user_info(self.identity),
            )
        except ValueError:
            cause = unsupported("propagationPolicy", propagation, Propagation)
            raise self.invalid_options(cause) from None

    def document(self) -> Document:
        """The object in the body. Raises `BadRequest`, `UnsupportedMediaType`."""
        return _object(bodies.read_object(self.content_type, self.body))

    def patch(self) -> Any:
        """The patch in the body, whose content type says what kind of patch it is."""
        return bodies.read(self.content_type, self.body)

    def patch_object(self) -> Document:
        """The same, for the kinds of patch that are objects."""
        return _object(self.patch())

    @property
    def name_in_body(self) -> str:
        """The name of the object in the body; empty when it has none or cannot be read."""
        try:
            metadata = self.document().get("metadata")
        except ApiError:
            return ""
        return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _object(value: Any) -> Document:
    if not isinstance(value, dict):
        raise BadRequest("the request's body must be an object")
    return value


def no_such_path(path: str) -> NotFound:
    """The error for a path that nothing is served at."""
    return NotFound(f"the server has nothing at {path}")
