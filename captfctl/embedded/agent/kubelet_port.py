"""The part of a kubelet's HTTPS port that `kubectl logs` needs on a real control plane.

kube-apiserver forwards a request for `pods/NAME/log` to the node:
`GET /containerLogs/NAMESPACE/POD/CONTAINER`. Left out: everything else of that port, and knowing
who asks: it listens on loopback only, with a certificate of its own, and answers every process of
this machine. Logs hold no secrets that the runner knows of (runner.md: Redaction); what a module
prints by itself is its own business.
"""

import ssl
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from captfctl.cluster.errors import ApiError
from captfctl.embedded.agent.logs import LogReader
from captfctl.embedded.apiserver.tls import ensure_certificates
from captfctl.serving.http import Answer, HttpServer, Request

_PREFIX = "containerLogs"
_NUMBERS = {"tailLines": "tail_lines", "sinceSeconds": "since_seconds", "limitBytes": "limit_bytes"}

OpenLog = Callable[..., LogReader]


def kubelet_port(port: int, open_log: OpenLog, directory: Path, now: datetime) -> HttpServer:
    """Serves what `open_log(namespace, pod, container, **options)` gives, once it is started.

    `directory` keeps the certificate. Raises `EnvironmentFault`.
    """
    certificates = ensure_certificates(directory, now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server, certificates.server_key)

    def respond(request: Request) -> Answer:
        return _answer(request, open_log)

    return HttpServer("the node agent's log port", ("127.0.0.1", port), respond, context)


def _answer(request: Request, open_log: OpenLog) -> Answer:
    path = request.path.strip("/").split("/")
    if len(path) != 4 or path[0] != _PREFIX:
        return _refusal(404, "this node serves /containerLogs/NAMESPACE/POD/CONTAINER only")
    if request.method != "GET":
        return _refusal(405, "logs are read with GET")
    try:
        return Answer(200, stream=open_log(*path[1:], **_options(parse_qs(request.query))))
    except ApiError as problem:
        return _refusal(problem.status, str(problem))
    except ValueError as problem:
        return _refusal(400, str(problem))


def _refusal(status: int, message: str) -> Answer:
    return Answer(status, message.encode() + b"\n")


def _options(query: dict[str, list[str]]) -> dict[str, Any]:
    """Raises `ValueError`."""
    options: dict[str, Any] = {
        ours: int(query[theirs][-1]) for theirs, ours in _NUMBERS.items() if theirs in query
    }
    for name in ("follow", "timestamps", "previous"):
        if name in query:
            options[name] = query[name][-1].lower() in ("true", "1")
    return options
