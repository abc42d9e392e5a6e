"""Events, in the core group and in events.k8s.io: two views of one storage."""

from captfctl.cluster.errors import Cause
from captfctl.cluster.store.naming import qualified_name_problems
from captfctl.cluster.store.strategy import Typed
from captfctl.cluster.store.violations import immutable, invalid, required, unsupported
from captfctl.model.resource import Document

TYPES = ("Normal", "Warning")
NOTE_MAX = 1024
_TEXT_MAX = 128
_CHANGEABLE = ("metadata", "series", "apiVersion", "kind")


class CoreEventStrategy(Typed):
    def default(self, document: Document) -> None:
        document.setdefault("involvedObject", {})
        document.setdefault("source", {})

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        return _check_namespace(document, "involvedObject")


class EventStrategy(Typed):
    """The new API is strict: who reports, what was done and when must be said."""

    def default(self, document: Document) -> None:
        document.setdefault("regarding", {})

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        causes = _check_namespace(document, "regarding")
        if old is None:
            return causes + _check_new(document)
        return causes + [
            immutable(field, document.get(field))
            for field in sorted({*document, *old} - set(_CHANGEABLE))
            if document.get(field) != old.get(field) and not field.startswith("deprecated")
        ]


def _check_namespace(document: Document, field: str) -> list[Cause]:
    namespace = document["metadata"].get("namespace", "")
    wanted = document[field].get("namespace", "")
    # What is not in a namespace has its events in `default`, and may have them anywhere.
    if wanted in ("", namespace):
        return []
    detail = "does not match the event's namespace"
    return [invalid(f"{field}.namespace", wanted, detail)]


def _check_new(document: Document) -> list[Cause]:
    causes = []
    if not document.get("eventTime"):
        causes.append(required("eventTime"))
    controller = document.get("reportingController", "")
    if not controller:
        causes.append(required("reportingController"))
    causes += [
        invalid("reportingController", controller, problem)
        for problem in (qualified_name_problems(controller) if controller else [])
    ]
    for field in ("reportingInstance", "action", "reason"):
        causes += _check_text(document, field)
    if len(document.get("note", "").encode()) > NOTE_MAX:
        detail = f"can have at most {NOTE_MAX} bytes"
        causes.append(invalid("note", "…", detail))
    if document.get("type") not in TYPES:
        causes.append(unsupported("type", document.get("type", ""), TYPES))
    return causes


def _check_text(document: Document, field: str) -> list[Cause]:
    text = document.get(field, "")
    if not text:
        return [required(field)]
    if len(text) > _TEXT_MAX:
        return [invalid(field, text, f"can have at most {_TEXT_MAX} characters")]
    return []
