"""Where an API server is, how to be known there, and connections to it."""

import math
import os
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import urllib3
from urllib3.util import make_headers

from captfctl.cluster import kubeconfig
from captfctl.cluster.credentials import Credentials, credentials_of, token_in
from captfctl.cluster.kubeconfig import CHOOSE, Chosen
from captfctl.cluster.live_exchange import Exchange
from captfctl.cluster.proxies import Proxy, proxy_for
from captfctl.errors import InputError

DEFAULT_KUBECONFIG = "~/.kube/config"
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ASK_AGAIN = 1.0
"""Seconds after which it is asked again whether the token is still good: asking a credential plugin
takes a third as long as a request. One that expires in between is refused, and then renewed."""


@dataclass(frozen=True, slots=True)
class Target:
    """One reading of the configuration. `who` names the user in messages."""

    server: str
    who: str
    credentials: Credentials
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    proxy: Proxy | None = None
    proxy_tls: ssl.SSLContext | None = None


class Connections:
    """Connections of one reading of the configuration.

    `direct` is None behind a proxy that wants requests in a form of its own.
    """

    def __init__(self, target: Target, size: int) -> None:
        self.pool = _pool(target, size)
        direct = target.proxy is None or target.proxy.is_socks
        self.direct = Exchange(self.pool, target.server) if direct else None

    def close(self) -> None:
        if self.direct is not None:
            self.direct.close()
        self.pool.clear()

    def abandon(self) -> None:
        if self.direct is not None:
            self.direct.abandon()
        self.pool.clear()


class Access:
    """An API server's address, our credentials there, and connections to it.

    `renew` reads everything again: tokens and certificates in files are replaced while we run.
    """

    def __init__(self, load: Callable[[], Target], pool_size: int) -> None:
        self._load = load
        self._pool_size = pool_size
        self._lock = threading.Lock()
        self._generation = 0
        self._target = load()
        self._connections = Connections(self._target, pool_size)
        self._headers: Mapping[str, str] = {}
        self._headers_until = -math.inf

    @property
    def server(self) -> str:
        return self._target.server

    @property
    def who(self) -> str:
        return self._target.who

    @property
    def proxy(self) -> str:
        """The address of the proxy that leads there, without credentials; empty: none does."""
        return self._target.proxy.url if self._target.proxy else ""

    def connection(self, now: float) -> tuple[Connections, Mapping[str, str], int]:
        """The connections, the headers that say who we are, and the credentials' generation.

        `now`: seconds on a clock that never goes back. A name may stand in the headers several
        times. Raises `InputError`.
        """
        with self._lock:  # one renewal of an expired token, not one per thread
            if now >= self._headers_until:
                self._headers = self._target.credentials.headers()
                self._headers_until = now + _ASK_AGAIN
            return self._connections, self._headers, self._generation

    def renew(self, generation: int) -> None:
        """Read the configuration again, unless another thread did since `generation`."""
        with self._lock:
            if generation != self._generation:
                return
            self._target = self._load()
            old = self._connections
            self._connections = Connections(self._target, self._pool_size)
            self._generation += 1
            self._headers_until = -math.inf
        old.close()

    def close(self) -> None:
        self._connections.close()

    def abandon(self) -> None:
        """End requests that wait for an answer, too."""
        self._connections.abandon()


def kubeconfig_access(
    path: str | None, context: str | None, environ: Mapping[str, str], pool_size: int
) -> Access:
    """From `path`; else `$KUBECONFIG`, else `~/.kube/config`, else a pod's own account
    (manager.md: Reaching the API server).

    Raises `InputError` naming the file and what is wrong with it.
    """
    files = kubeconfig.files_named(path, environ)
    if not files:
        default = Path(DEFAULT_KUBECONFIG).expanduser()
        if os.path.isfile(default):  # noqa: PTH113 - Path.is_file() raises where nobody may look
            files = [str(default)]
        elif environ.get("KUBERNETES_SERVICE_HOST"):
            return in_cluster_access(environ, pool_size)
        else:
            raise InputError(
                "there is no kubeconfig", why=f"{DEFAULT_KUBECONFIG} does not exist", do=CHOOSE
            )
    return Access(lambda: _from_files(files, context, environ), pool_size)


def in_cluster_access(
    environ: Mapping[str, str], pool_size: int, *, directory: Path = _SERVICE_ACCOUNT
) -> Access:
    """As the ServiceAccount of the pod we run in, whose files are in `directory`."""
    what = "the pod's ServiceAccount cannot be used"

    def load() -> Target:
        host = environ.get("KUBERNETES_SERVICE_HOST", "")
        port = environ.get("KUBERNETES_SERVICE_PORT", "")
        if not host or not port:
            raise InputError(what, why="the variables KUBERNETES_SERVICE_* are not set", do=CHOOSE)
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        authority = directory / "ca.crt"
        try:
            tls = _trusting(authority.read_bytes())
            credentials = Credentials(token_in(directory / "token"))
        except OSError as error:
            raise InputError(what, where=str(authority), why=str(error.strerror)) from error
        except InputError as error:
            raise InputError(what, where=error.where, why=error.why or error.what) from error
        proxy = proxy_for(server, "", environ, "")
        return Target(server, "the pod's ServiceAccount", credentials, tls, proxy=proxy)

    return Access(load, pool_size)


def _from_files(files: list[str], context: str | None, environ: Mapping[str, str]) -> Target:
    chosen = kubeconfig.choose(files, context)
    server = kubeconfig.server_url(chosen.cluster)
    secure = server.startswith("https:")
    authority = _authority(chosen)
    credentials = credentials_of(chosen, secure=secure)
    who = f'user "{chosen.user_name}"' if chosen.user_name else "nobody"
    if chosen.user.impersonate:
        who = f'"{chosen.user.impersonate}", impersonated by {who},'
    proxy = proxy_for(server, chosen.cluster.proxy_url, environ, chosen.where_cluster)
    verified_proxy = proxy is not None and proxy.scheme == "https"
    return Target(
        server=server,
        who=f'{who} of context "{chosen.context}" in {chosen.paths}',
        credentials=credentials,
        tls=_tls(chosen, authority, credentials) if secure else None,
        server_name=chosen.cluster.tls_server_name,
        proxy=proxy,
        proxy_tls=_verifying(chosen, authority, or_system=True) if verified_proxy else None,
    )


def _authority(chosen: Chosen) -> bytes:
    cluster, where = chosen.cluster, chosen.where_cluster
    if cluster.certificate_authority:
        with _as_certificate("certificate authority", where):
            return Path(cluster.certificate_authority).read_bytes()
    name = "certificate-authority-data"
    return kubeconfig.decoded(cluster.certificate_authority_data, name, where)


def _verifying(chosen: Chosen, authority: bytes, *, or_system: bool = False) -> ssl.SSLContext:
    with _as_certificate("certificate authority", chosen.where_cluster):
        tls = _trusting(authority)
    if or_system:
        tls.load_default_certs()
    if chosen.cluster.insecure_skip_tls_verify:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls


def _tls(chosen: Chosen, authority: bytes, credentials: Credentials) -> ssl.SSLContext:
    """Certificates are read here: the first request would blame the server for a bad one."""
    user, tls = chosen.user, _verifying(chosen, authority)
    with _as_certificate("client certificate", chosen.where_user):
        if user.client_certificate or user.client_certificate_data:
            with (
                _file(user.client_certificate, user.client_certificate_data, chosen) as certificate,
                _file(user.client_key, user.client_key_data, chosen) as key,
            ):
                tls.load_cert_chain(certificate, key, _no_password)
        elif credentials.certificate:
            tls.load_cert_chain(credentials.certificate, credentials.key or None, _no_password)
    return tls


def _trusting(authority: bytes) -> ssl.SSLContext:
    """Trusts whom the PEM certificates in `authority` vouch for; those of the system if empty."""
    tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
    # Authorities of clusters are often older than the rules that Python 3.13 became strict about.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return tls


@contextmanager
def _file(path: str, data: str, chosen: Chosen) -> Iterator[str]:
    """A file with the content of `data`, for as long as it is needed, where `path` names none."""
    if path:
        yield path
        return
    with tempfile.NamedTemporaryFile() as file:  # its mode is 0600
        file.write(kubeconfig.decoded(data, "client-certificate-data or -key", chosen.where_user))
        file.flush()
        yield file.name


def _no_password() -> str:
    """Else OpenSSL asks at the terminal."""
    raise ValueError("the key is protected by a password")


@contextmanager
def _as_certificate(what: str, where: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        file = getattr(error, "filename", None)
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"the {what} of the kubeconfig cannot be used",
            where=where,
            why=f"{file}: {why}" if file else why,
            do="it must be a PEM certificate, written in base64 in *-data fields",
        ) from error


class _ThroughProxy(urllib3.ProxyManager):
    """Keeps headers apart that have one name: groups to impersonate."""

    def _set_proxy_headers(
        self, url: str, headers: Mapping[str, str] | None = None
    ) -> Mapping[str, str]:
        own = urllib3.HTTPHeaderDict(super()._set_proxy_headers(url))
        own.extend(headers or {})
        return own


def _pool(target: Target, size: int) -> urllib3.PoolManager:
    options: dict[str, object] = {
        "maxsize": size,
        "socket_options": _keep_alive(),
    }
    if target.tls is not None:
        options["ssl_context"] = target.tls
        if target.tls.verify_mode == ssl.CERT_NONE:
            options |= {"cert_reqs": "CERT_NONE", "assert_hostname": False}
        if target.server_name:
            options["server_hostname"] = target.server_name
    proxy = target.proxy
    if proxy is None:
        return urllib3.PoolManager(**options)  # type: ignore[arg-type]
    if proxy.is_socks:
        from captfctl.cluster.socks import socks_manager

        return socks_manager(proxy, **options)
    headers = None
    if proxy.username or proxy.password:
        headers = make_headers(proxy_basic_auth=f"{proxy.username}:{proxy.password}")
    return _ThroughProxy(
        proxy.url,
        proxy_headers=headers,
        proxy_ssl_context=target.proxy_tls,
        **options,  # type: ignore[arg-type]
    )


def _keep_alive() -> list[tuple[int, int, int]]:
    """A peer that is gone without a word is noticed by the kernel even where no timeout applies."""
    seconds = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
    return [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        *(
            (socket.IPPROTO_TCP, getattr(socket, name), value)
            for name, value in seconds
            if hasattr(socket, name)
        ),
    ]
