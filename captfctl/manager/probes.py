"""`/healthz` and `/readyz` (manager.md: Endpoints)."""

from collections.abc import Callable

from captfctl.serving.http import NOT_FOUND, Answer, Request, Respond


def probes(missing: Callable[[], list[str]]) -> Respond:
    """Alive as long as it answers; ready once nothing is `missing`, on a standby too."""

    def respond(request: Request) -> Answer:
        if request.method == "PUT":
            return Answer(405, b"only GET\n")
        if request.path == "/healthz":
            return Answer(200, b"ok\n")
        if request.path != "/readyz":
            return NOT_FOUND
        waiting = missing()
        if not waiting:
            return Answer(200, b"ok\n")
        text = f"not ready: the first list of {', '.join(waiting)} is not there yet\n"
        return Answer(500, text.encode())

    return respond
