"""Progress events about the object a run is for (runner.md: Progress events).

Best effort: an event that cannot be posted is given up after two seconds, and after three failures
in a row no more are tried. Neither changes how the run ends.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from runner import wire
from runner.log import Log
from runner.run_options import RunOptions
from runner.text import cut

if TYPE_CHECKING:
    from runner.api import Api

CONTROLLER = "captf.io/runner"
SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"

NORMAL = "Normal"
WARNING = "Warning"

_MOST_FAILURES = 3
_LONGEST_NOTE = 1024
_LONGEST_ACTION = 128
_LONGEST_INSTANCE = 128
_LONGEST_NAME = 200


class Server(Protocol):
    """Takes documents for the API."""

    def post(self, path: str, body: bytes) -> None:
        """Post a document. Raises OSError or ValueError with a reason."""
        ...

    def close(self) -> None:
        """Nothing more will be posted."""
        ...


class ObjectReference(NamedTuple):
    """The object events are about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def parse(cls, text: str) -> "ObjectReference":
        """Read `<apiVersion>/<kind>/<namespace>/<name>/<uid>`. Raises ValueError."""
        parts = text.split("/")
        if len(parts) < 5 or not all(parts):
            raise ValueError(
                f"{text!r} is not <apiVersion>/<kind>/<namespace>/<name>/<uid> without empty parts"
            )
        return cls("/".join(parts[:-4]), *parts[-4:])


class Events:
    """Posts the events of one run; does nothing when they are not wanted or not possible."""

    def __init__(
        self,
        log: Log,
        regarding: ObjectReference | None = None,
        server: Server | None = None,
        job: str = "",
        instance: str = "",
    ) -> None:
        self._log = log
        self._regarding = regarding
        self._server = server
        self._job = job
        self._instance = instance or os.uname().nodename or "runner"
        self._redact: Callable[[str], str] = str
        self._failures = 0
        self._reported = False
        self._last_number = 0

    @classmethod
    def for_run(cls, options: RunOptions, environ: Mapping[str, str], log: Log) -> "Events":
        """The events of a run, as its flags and its surroundings allow."""
        if not options.event_object:
            return cls(log)
        try:
            regarding = ObjectReference.parse(options.event_object)
            server = api_server(environ)
        except (OSError, ValueError) as error:
            log.info("No progress events are posted", err=str(error))
            return cls(log)
        return cls(log, regarding, server, options.job_name, environ.get("HOSTNAME", ""))

    def redact_with(self, redact: Callable[[str], str]) -> None:
        """Pass every later note through `redact`."""
        self._redact = redact

    def emit(self, reason: str, kind: str, action: str, note: str) -> None:
        """Post one event; `kind` is Normal or Warning."""
        if self._regarding is None or self._server is None:
            return
        path = f"/apis/events.k8s.io/v1/namespaces/{self._regarding.namespace}/events"
        try:
            body = self._document(self._regarding, reason, kind, action, note)
            self._server.post(path, body)
        except Exception as error:  # an event never fails the run
            known = isinstance(error, OSError | ValueError)
            self._failed(reason, str(error) if known else type(error).__name__)
        else:
            self._failures = 0

    def close(self) -> None:
        """The run is over."""
        if self._server is not None:
            self._server.close()

    def _failed(self, reason: str, why: str) -> None:
        self._failures += 1
        if not self._reported:
            self._reported = True
            self._log.info("A progress event could not be posted", reason=reason, err=why)
        if self._failures >= _MOST_FAILURES:
            self.close()
            self._server = None
            self._log.info("Progress events are given up", failures=self._failures)

    def _document(
        self, regarding: ObjectReference, reason: str, kind: str, action: str, note: str
    ) -> bytes:
        self._last_number = max(time.time_ns(), self._last_number + 1)
        seconds, nanoseconds = divmod(self._last_number, 1_000_000_000)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        stem = cut(regarding.name, _LONGEST_NAME).rstrip("-.")
        document: dict[str, object] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "namespace": regarding.namespace,
                "name": f"{stem}.{self._last_number:x}",
            },
            "eventTime": f"{stamp}.{nanoseconds // 1000:06d}Z",
            "reportingController": CONTROLLER,
            "reportingInstance": cut(self._instance, _LONGEST_INSTANCE),
            "action": cut(action, _LONGEST_ACTION),
            "reason": reason,
            "type": kind,
            "regarding": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": regarding.uid,
            },
        }
        if self._job:
            document["related"] = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "namespace": regarding.namespace,
                "name": self._job,
            }
        if shown := cut(self._redact(note), _LONGEST_NOTE):
            document["note"] = shown
        return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


def api_server(environ: Mapping[str, str]) -> "Api":
    """The API server as a pod finds it. Raises OSError or ValueError when it cannot."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ValueError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set")
    from runner.api import Api  # the TLS library is loaded only when it is needed

    return Api(
        host, port, environ.get(wire.SERVICE_ACCOUNT_VARIABLE) or SERVICE_ACCOUNT_DIR, environ
    )
