"""Answers that go on: they are sent piece by piece and leave nothing open behind them."""

from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class Stream(StreamingResponse):
    """`close` is called when the stream ends for any reason: its own end, the client's, a stop."""

    def __init__(
        self, pieces: AsyncIterator[bytes], close: Callable[[], None], content_type: str
    ) -> None:
        super().__init__(pieces, media_type=content_type)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()
