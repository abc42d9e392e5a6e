"""Where an API server is and how to be known there: kubeconfig files and a pod's own account.

Reading configuration, running credential plugins and renewing tokens is the `kubernetes` library's
work. Here its ways to fail are told apart, and no failure is passed over: a plugin that fails is an
error and not an anonymous request.
"""

import contextlib
import logging
import math
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import (
    SERVICE_CERT_FILENAME,
    SERVICE_HOST_ENV_NAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)
from kubernetes.config.kube_config import (
    ENV_KUBECONFIG_PATH_SEPARATOR,
    KubeConfigLoader,
    KubeConfigMerger,
)

from captfctl.cluster.live_exchange import Exchange
from captfctl.errors import InputError

DEFAULT_KUBECONFIG = "~/.kube/config"
_ASK_AGAIN = 1.0
"""Seconds after which the library is asked again whether the token is still good: asking takes a
third as long as a request. One that expires in between is refused, and then renewed."""

CHOOSE = "name one with --kubeconfig or the environment variable KUBECONFIG"


@dataclass(frozen=True, slots=True)
class Loaded:
    """One reading of the configuration. `who` names the user in messages."""

    configuration: Configuration
    who: str


class Connections:
    """Connections of one reading of the configuration. `direct` is None behind a proxy."""

    def __init__(self, configuration: Configuration, size: int) -> None:
        self.pool = _pool(configuration, size)
        proxied = bool(configuration.proxy) or self.pool.proxy is not None
        self.direct = None if proxied else Exchange(self.pool, str(configuration.host))

    def close(self) -> None:
        """Close what is idle."""
        if self.direct is not None:
            self.direct.close()
        self.pool.clear()


class Access:
    """An API server's address, our credentials there, and connections to it.

    `renew` reads everything again: tokens and certificates in files are replaced while we run.
    """

    def __init__(self, load: Callable[[], Loaded], pool_size: int) -> None:
        self._load = load
        self._pool_size = pool_size
        self._lock = threading.Lock()
        self._generation = 0
        self._loaded = load()
        self._connections = Connections(self._loaded.configuration, pool_size)
        self._headers: dict[str, str] = {}
        self._headers_until = -math.inf

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self._loaded.configuration.host)

    @property
    def who(self) -> str:
        """The user we act as, as the configuration names it."""
        return self._loaded.who

    def connection(self, now: float) -> tuple[Connections, dict[str, str], int]:
        """The connections, the headers that authenticate us, and the credentials' generation.

        `now`: seconds on a clock that never goes back.
        """
        with self._lock:  # one renewal of an expired token, not one per thread
            if now >= self._headers_until:
                self._headers, self._headers_until = self._authentication(), now + _ASK_AGAIN
            return self._connections, self._headers, self._generation

    def _authentication(self) -> dict[str, str]:
        try:
            token = self._loaded.configuration.get_api_key_with_prefix(
                "BearerToken", alias="authorization"
            )
        except (ConfigException, OSError, ValueError) as error:
            raise InputError(
                f"the credentials of {self.who} cannot be renewed", why=str(error)
            ) from error
        return {"Authorization": token.strip()} if token else {}

    def renew(self, generation: int) -> None:
        """Read the configuration again, unless another thread did since `generation`."""
        with self._lock:
            if generation != self._generation:
                return
            self._loaded = self._load()
            old = self._connections
            self._connections = Connections(self._loaded.configuration, self._pool_size)
            self._generation += 1
            self._headers_until = -math.inf
        old.close()

    def close(self) -> None:
        """Close the idle connections."""
        self._connections.close()


def kubeconfig_access(
    path: str | None, context: str | None, environ: Mapping[str, str], pool_size: int
) -> Access:
    """From `path`; else `$KUBECONFIG`, else `~/.kube/config`, else a pod's own account
    (manager.md: Reaching the API server).

    Raises `InputError` naming the file and what is wrong with it.
    """
    paths = path or environ.get("KUBECONFIG") or ""
    if not paths:
        default = Path(DEFAULT_KUBECONFIG).expanduser()
        if os.path.isfile(default):  # noqa: PTH113 - Path.is_file() raises where nobody may look
            paths = str(default)
        elif environ.get(SERVICE_HOST_ENV_NAME):
            return in_cluster_access(environ, pool_size)
        else:
            raise InputError(
                "there is no kubeconfig", why=f"{DEFAULT_KUBECONFIG} does not exist", do=CHOOSE
            )
    return Access(lambda: _from_files(paths, context), pool_size)


def in_cluster_access(
    environ: Mapping[str, str],
    pool_size: int,
    *,
    token_file: str = SERVICE_TOKEN_FILENAME,
    ca_file: str = SERVICE_CERT_FILENAME,
) -> Access:
    """As the ServiceAccount of the pod we run in. Its token is read again every minute."""

    def load() -> Loaded:
        configuration = Configuration()
        loader = InClusterConfigLoader(token_file, ca_file, environ=environ)
        with _plainly("the pod's ServiceAccount cannot be used", ""):
            loader.load_and_set(configuration)
        return Loaded(configuration, "the pod's ServiceAccount")

    return Access(load, pool_size)


def _from_files(paths: str, context: str | None) -> Loaded:
    files = [Path(p).expanduser() for p in paths.split(ENV_KUBECONFIG_PATH_SEPARATOR) if p]
    if not any(os.path.exists(file) for file in files):  # noqa: PTH110 - as above
        raise InputError(f"kubeconfig {paths} does not exist", do=f"check the path, or {CHOOSE}")
    configuration = Configuration()
    with _plainly("the kubeconfig cannot be used", paths):
        merger = KubeConfigMerger(paths)
        if merger.config is None:
            raise ConfigException("it is empty")
        _check_context(merger.config, context, paths)
        loader = KubeConfigLoader(
            merger.config,
            active_context=context,
            config_base_path=None,
            config_persister=merger.save_changes,
        )
        with _reported() as reports:
            loader.load_and_set(configuration)
        chosen = loader.current_context
    _check(configuration, reports, paths, chosen)
    user = chosen["context"].get("user", "")
    who = f'user "{user}"' if user else "nobody"
    return Loaded(configuration, f'{who} of context "{chosen["name"]}" in {paths}')


def _check_context(config: Any, context: str | None, paths: str) -> None:
    names = [entry["name"] for entry in config.value.get("contexts") or ()]
    if context is None:
        if not config.value.get("current-context"):
            raise InputError(
                "the kubeconfig has no current context",
                where=paths,
                do="choose one with --context" + (f": it has {', '.join(names)}" if names else ""),
            )
    elif context not in names:
        raise InputError(
            f'the kubeconfig has no context "{context}"',
            where=paths,
            do=f"use one of {', '.join(names)}" if names else CHOOSE,
        )


def _check(
    configuration: Configuration, reports: list[str], paths: str, chosen: Mapping[str, Any]
) -> None:
    if reports:
        raise InputError(
            "the credential plugin gave no credentials",
            where=f'{paths}, user "{chosen["context"].get("user", "")}"',
            why=reports[-1],
            do="run its login command, or fix the user's exec section",
        )
    server = str(configuration.host)
    if not server.startswith(("https://", "http://")):
        raise InputError(
            f'"{server}" is not the URL of a server',
            where=f'{paths}, cluster "{chosen["context"].get("cluster", "")}"',
            do="write it with its scheme: https://HOST:PORT",
        )


@contextlib.contextmanager
def _plainly(what: str, where: str) -> Iterator[None]:
    """Turn the library's and the files' errors into ours; contents are never quoted."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(what, where=f"{where}{line}", why=f"not YAML: {error.problem}") from error
    except UnicodeDecodeError as error:
        raise InputError(what, where=where, why="it is not UTF-8 text") from error
    except ConfigException as error:
        raise InputError(what, where=where, why=_tidy(str(error))) from error
    except OSError as error:
        raise InputError(
            what, where=str(error.filename or where), why=str(error.strerror)
        ) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The library trusts a file's shape; these are what it trips over when it is another.
        raise InputError(
            what,
            where=where,
            why="it does not have the form of a kubeconfig",
            do="see `kubectl config view` for one that has",
        ) from error


def _tidy(text: str) -> str:
    text = text.removeprefix("Invalid kube-config file. ").removeprefix("Invalid kube-config. ")
    return text[:1].lower() + text[1:]


@contextlib.contextmanager
def _reported() -> Iterator[list[str]]:
    """Catch what the library only logs: that a credential plugin failed, and how."""
    reports: list[str] = []
    thread = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        if record.thread != thread or record.module != "kube_config":
            return True
        reports.append(record.getMessage())
        return False

    root = logging.getLogger()
    quiet = None if root.handlers else logging.NullHandler()
    if quiet:  # without any handler the library's call would set one up for the whole process
        root.addHandler(quiet)
    root.addFilter(keep)
    try:
        yield reports
    finally:
        root.removeFilter(keep)
        if quiet:
            root.removeHandler(quiet)


def _pool(configuration: Configuration, size: int) -> urllib3.PoolManager:
    _check_certificates(configuration)
    configuration.connection_pool_maxsize = size
    # A peer that is gone without a word is noticed by the kernel even where no timeout applies.
    configuration.keep_alive = True
    # What was found is settled. Else the library looks through the environment for a proxy again
    # each time it is asked for the token.
    configuration.proxy = configuration.proxy
    pool: urllib3.PoolManager = RESTClientObject(configuration).pool_manager
    return pool


def _check_certificates(configuration: Configuration) -> None:
    """Certificates are otherwise read by the first request, which would blame the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if configuration.ssl_ca_cert:
        with _as_certificates("certificate authority"):
            context.load_verify_locations(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        with _as_certificates("client certificate"):
            context.load_cert_chain(configuration.cert_file, configuration.key_file)


@contextlib.contextmanager
def _as_certificates(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise InputError(
            f"the {what} of the kubeconfig cannot be used",
            why=getattr(error, "reason", None) or str(error),
            do="it must be a PEM certificate, written in base64 in *-data fields",
        ) from error
