"""The API server's application without sockets: a request in, status and body out."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from captfctl.clock import SystemClock
from captfctl.embedded.apiserver.app import App
from captfctl.embedded.apiserver.auth import Authenticator
from captfctl.embedded.apiserver.tokens import serve_tokens
from captfctl.embedded.store import EmbeddedStore


@dataclass
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class InProcess:
    """An application over a store in memory, asked by its owner unless a header says otherwise."""

    folder: Path
    store: EmbeddedStore = field(init=False)

    def __post_init__(self):
        clock = SystemClock()
        self.store = EmbeddedStore.in_memory(clock)
        self._pool = ThreadPoolExecutor(1)
        authenticator = Authenticator(self.folder, "owner", lambda namespace, name: "")
        serve_tokens(self.store, authenticator, clock)
        self.app = App(self.store, clock, authenticator, None, self._pool, self._pool)
        self._headers = {"authorization": f"Bearer {authenticator.token}"}
        self._loop = asyncio.new_event_loop()

    def close(self):
        self._loop.close()
        self._pool.shutdown()
        self.store.close()

    def __call__(self, method, path, body=b"", content_type="application/json", **headers):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        given = self._headers | {"content-type": content_type} | headers
        return self._loop.run_until_complete(self._ask(method, path, body, given))

    async def _ask(self, method, target, body, headers):
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": unquote(path),
            "raw_path": quote(path).encode(),
            "query_string": query.encode(),
            "headers": [
                (name.encode(), value.encode("latin-1")) for name, value in headers.items()
            ],
            "server": ("127.0.0.1", 443),
            "scheme": "https",
        }
        sent = []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        head = sent[0]
        names = {key.decode(): value.decode() for key, value in head["headers"]}
        return Answer(
            head["status"], b"".join(message.get("body", b"") for message in sent[1:]), names
        )
