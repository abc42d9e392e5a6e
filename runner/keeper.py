"""Keeping a state in Secrets while it cannot be stored
(runner.md: A state that could not be stored)."""

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Protocol

from runner import kept, wire
from runner.log import Log

if TYPE_CHECKING:
    from runner.api import Answer

_SECONDS = 10.0
"""For one Secret: it may be a megabyte."""
_TAKEN = 409
_GONE = 404
_EMPTY_STATE = (
    b'{"version":4,"terraform_version":"1.0.0","serial":0,"lineage":"","outputs":{},"resources":[]}'
)


class Server(Protocol):
    """Takes requests for the API."""

    def request(self, method: str, path: str, body: bytes = b"", *, seconds: float = ...) -> int:
        """Make one request; the status of the answer. Raises OSError or ValueError without one."""
        ...

    def get(self, path: str, *, seconds: float = ...) -> "Answer":
        """Read one object. Raises as `request`."""
        ...

    def close(self) -> None:
        """No more requests will be made."""
        ...


class Keeper:
    """Does nothing where there is no API server, or no telling whose state it is."""

    def __init__(self, log: Log, place: kept.Place | None, server: Server | None) -> None:
        self.secrets = 0
        """In how many Secrets the state is kept; 0: it is not."""
        self._log = log
        self._place = place
        self._server = server

    @property
    def watched(self) -> bool:
        """Whether this is a pod, which is told to stop when its time is over."""
        return self._server is not None

    def keep(self, state: bytes) -> None:
        """Keep the state, unless it is kept already or is no whole state."""
        if self.secrets or self._place is None or self._server is None:
            return
        if kept.describe(state) is None:
            return
        documents = kept.documents(state, self._place)
        try:
            for document in documents:
                self._put(self._server, self._place, document)
        except (OSError, ValueError) as error:
            self._log.info("The state could not be kept in Secrets either", err=str(error))
            return
        self.secrets = len(documents)
        self._log.info(
            "The state is kept in Secrets until it is stored",
            secret=self._place.name(),
            count=self.secrets,
        )

    def forget(self) -> None:
        """The state is stored. The base goes first: without it the others mean nothing. What is
        left here is removed by the manager."""
        if self._place is None or self._server is None:
            return
        try:
            for part in range(self.secrets):
                path = f"{_path(self._place)}/{self._place.name(part)}"
                self._expect(self._server.request("DELETE", path), _GONE)
        except (OSError, ValueError) as error:
            self._log.info("Secrets that kept the state are left", err=str(error))
        self.secrets = 0

    def clear_stored(self) -> bool:
        """Put an empty state in the place of a stored one that cannot be read any more, so that the
        runtime takes another; whether that was done.

        A state of several Secrets that was written only in part can neither be read nor replaced by
        the runtime, not even with `-force`. This must only be done while the newest state is kept.
        """
        if self._place is None or self._server is None:
            return False
        path = f"{_path(self._place)}/tfstate-default-{self._place.suffix}"
        try:
            answer = self._server.get(path, seconds=_SECONDS)
            self._expect(answer.status)
            secret = json.loads(answer.body)
            secret["data"][wire.KEPT_KEY] = b64encode(kept.packed(_EMPTY_STATE)).decode()
            body = json.dumps(secret).encode()
            self._expect(self._server.request("PUT", path, body, seconds=_SECONDS))
        except (OSError, ValueError, LookupError, TypeError) as error:
            self._log.info("The stored state that is torn could not be cleared", err=str(error))
            return False
        self._log.info("The stored state was torn and is cleared, to be replaced by the kept one")
        return True

    def close(self) -> None:
        """The run is over."""
        if self._server is not None:
            self._server.close()

    def _put(self, server: Server, place: kept.Place, document: dict[str, object]) -> None:
        path, body = _path(place), json.dumps(document).encode()
        status = server.request("POST", path, body, seconds=_SECONDS)
        if status == _TAKEN:  # of an earlier run, whose state this run has stored
            metadata = document["metadata"]
            assert isinstance(metadata, dict)
            status = server.request("PUT", f"{path}/{metadata['name']}", body, seconds=_SECONDS)
        self._expect(status)

    def _expect(self, status: int, *others: int) -> None:
        if not 200 <= status <= 299 and status not in others:
            raise ValueError(f"the API server answered {status}")


def _path(place: kept.Place) -> str:
    return f"/api/v1/namespaces/{place.namespace}/secrets"
