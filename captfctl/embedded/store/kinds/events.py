"""Events, in the core group and in events.k8s.io: two views of one storage."""

from captfctl.cluster.errors import Cause
from captfctl.embedded.store.naming import qualified_name_problems
from captfctl.embedded.store.strategy import Typed
from captfctl.embedded.store.violations import immutable, invalid, required, unsupported
from captfctl.model.resource import Document

TYPES = ("Normal", "Warning")
NOTE_MAX = 1024
_TEXT_MAX = 128
_OF_NO_NAMESPACE = ("default", "kube-system")
_CHANGEABLE = ("metadata", "series", "apiVersion", "kind")


class CoreEventStrategy(Typed):
    """Events of the core group."""

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        if old is not None:
            return []
        if document.get("eventTime"):
            return _check_new(document, "involvedObject", "message", "reportingComponent")
        return _check_old_style(document)


class EventStrategy(Typed):
    """The new API is strict: who reports, what was done and when must be said."""

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        if old is None:
            causes = [] if document.get("eventTime") else [required("eventTime")]
            causes += _check_new(document, "regarding", "note", "reportingController")
            if document.get("type") not in TYPES:
                causes.append(unsupported("type", document.get("type", ""), TYPES))
            return causes
        return [
            immutable(field, document.get(field))
            for field in sorted({*document, *old} - set(_CHANGEABLE))
            if document.get(field) != old.get(field) and not field.startswith("deprecated")
        ]


def _mismatch(namespace: str) -> Cause:
    # The server names the fields as they are stored, whatever API the event came by.
    return invalid("involvedObject.namespace", namespace, "does not match event.namespace")


def _check_old_style(document: Document) -> list[Cause]:
    namespace = document["metadata"].get("namespace", "")
    about = document["involvedObject"].get("namespace", "")
    # What is not in a namespace has its events in the default one.
    return [] if namespace == (about or "default") else [_mismatch(about)]


def _check_new(document: Document, regarding: str, note: str, reporter: str) -> list[Cause]:
    causes = []
    about = document[regarding].get("namespace", "")
    if not about and document["metadata"].get("namespace", "") not in _OF_NO_NAMESPACE:
        causes.append(_mismatch(about))
    controller = document.get(reporter, "")
    if not controller:
        causes.append(required(reporter))
    causes += [
        invalid(reporter, controller, problem)
        for problem in (qualified_name_problems(controller) if controller else [])
    ]
    for field in ("reportingInstance", "action", "reason"):
        causes += _check_text(document, field)
    if len(document.get(note, "").encode()) > NOTE_MAX:
        # The text itself stays out: it is long, and may say what is nobody's business.
        causes.append(invalid("message", "", f"can have at most {NOTE_MAX} characters"))
    return causes


def _check_text(document: Document, field: str) -> list[Cause]:
    text = document.get(field, "")
    if not text:
        return [required(field)]
    if len(text) > _TEXT_MAX:
        return [invalid(field, text, f"can have at most {_TEXT_MAX} characters")]
    return []
