"""Which proxy leads to a server: the cluster's own, or that of the environment, as for kubectl."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from captfctl.errors import InputError

SCHEMES = ("http", "https", "socks5")
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy's address. Its credentials are for the proxy alone, and for no message."""

    scheme: str
    host: str
    port: int
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """Without the credentials."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith("socks")


def proxy_for(server: str, configured: str, environ: Mapping[str, str], where: str) -> Proxy | None:
    """`configured`: the cluster's `proxy-url`. It counts for any server, also on this machine."""
    if configured:
        proxy = _parsed(configured)
        if proxy is None or proxy.scheme not in SCHEMES:
            raise InputError(
                "proxy-url is not the address of a proxy that can be used",
                where=where,
                do="write it as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT",
            )
        return proxy
    return _of_environment(server, environ)


def _of_environment(server: str, environ: Mapping[str, str]) -> Proxy | None:
    parts = urlsplit(server)
    name = f"{parts.scheme.upper()}_PROXY"
    variable = name if environ.get(name) else name.lower()
    address = environ.get(variable, "")
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or _PORTS[parts.scheme]
    no_proxy = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if not address or _is_local(host) or _is_excepted(host, port, no_proxy):
        return None
    proxy = _parsed(address) or _parsed(f"http://{address}")
    if proxy is None or proxy.scheme not in _PORTS:
        raise InputError(
            f"the environment variable {variable} is not the address of a proxy",
            do="write it as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT",
        )
    return proxy


def _parsed(address: str) -> Proxy | None:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname:
        return None
    return Proxy(
        parts.scheme,
        parts.hostname,
        port or _PORTS.get(parts.scheme, 0),
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def _is_local(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _is_excepted(host: str, port: int, no_proxy: str) -> bool:
    """Whether an entry of `NO_PROXY` names the host: `*`, an address, a range or a domain."""
    return any(_names(entry.strip().lower(), host, port) for entry in no_proxy.split(","))


def _names(entry: str, host: str, port: int) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    address = _address(host)
    try:
        network = ipaddress.ip_network(entry, strict=False)
    except ValueError:
        pass
    else:
        return address is not None and address.version == network.version and address in network
    name, with_port = _split_port(entry)
    if with_port is not None and with_port != port:
        return False
    if (same := _address(name)) is not None or address is not None:
        return same == address
    domain = name[1:] if name.startswith("*.") else name
    if domain.startswith("."):
        return host.endswith(domain)
    return host == domain or host.endswith(f".{domain}")


def _split_port(entry: str) -> tuple[str, int | None]:
    name, colon, port = entry.rpartition(":")
    if colon and port.isdecimal() and (":" not in name or name.endswith("]")):
        return name.strip("[]"), int(port)
    return entry.strip("[]"), None
