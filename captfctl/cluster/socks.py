"""Connections through a SOCKS5 proxy, which looks up the server's name itself, as for kubectl."""

import socket
from collections.abc import Callable
from typing import Any

import urllib3
from python_socks import ProxyError, ProxyTimeoutError, ProxyType
from python_socks.sync import Proxy as SocksProxy
from urllib3 import exceptions as http_errors
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from captfctl.cluster.proxies import Proxy


def socks_manager(proxy: Proxy, **options: Any) -> urllib3.PoolManager:
    """A pool manager whose connections go through `proxy`."""

    class Plain(HTTPConnection):
        _new_conn = _connecting(proxy)

    class Secure(HTTPSConnection):
        _new_conn = _connecting(proxy)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    manager = urllib3.PoolManager(**options)
    manager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}
    return manager


def _connecting(proxy: Proxy) -> Callable[[Any], socket.socket]:
    def connected(connection: Any) -> socket.socket:
        client = SocksProxy.create(
            ProxyType.SOCKS5,
            proxy.host,
            proxy.port,
            username=proxy.username or None,
            password=proxy.password or None,
            rdns=True,
        )
        limit = connection.timeout
        try:
            found = client.connect(
                connection.host,
                connection.port,
                timeout=limit if isinstance(limit, int | float) else None,
            )
        except (ProxyTimeoutError, TimeoutError) as error:
            text = f"proxy {proxy.url} did not connect us in time"
            raise http_errors.ConnectTimeoutError(connection, text) from error
        except (ProxyError, OSError) as error:
            text = f"proxy {proxy.url}: {error}"
            raise http_errors.NewConnectionError(connection, text) from error
        for option in connection.socket_options or ():
            found.setsockopt(*option)
        return found

    return connected
