"""The embedded API server: enough of the Kubernetes API for kubectl and other unchanged clients.

`ApiServer` is in `captfctl.embedded.apiserver.server`; importing this package alone is cheap.
"""

from typing import TYPE_CHECKING, Any

from captfctl.embedded.apiserver.log_source import LogSource, LogStream

if TYPE_CHECKING:
    from captfctl.embedded.apiserver.server import ApiServer

__all__ = ["ApiServer", "LogSource", "LogStream"]


def __getattr__(name: str) -> Any:
    # The server brings starlette, uvicorn and cryptography along: only for those who start one.
    if name == "ApiServer":
        from captfctl.embedded.apiserver.server import ApiServer

        return ApiServer
    raise AttributeError(name)
