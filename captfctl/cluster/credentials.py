"""The headers by which an API server knows us.

A token file is read again while we run, and wins over a token. Running credential plugins and
renewing what an identity provider gave is the `kubernetes` library's work; here its ways to fail
are told apart, and no failure is passed over: a plugin that fails is an error and not an anonymous
request.
"""

import base64
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes.client import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger
from urllib3 import HTTPHeaderDict

from captfctl.cluster.kubeconfig import Chosen, User
from captfctl.errors import InputError

Authorization = Callable[[], str]
"""The value of the header `Authorization`, asked about once a second; empty: without one.

Raises `InputError`."""

_UNESCAPED = frozenset(
    "!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What we show to a server. A certificate and its key are in PEM files."""

    authorization: Authorization
    impersonation: tuple[tuple[str, str], ...] = ()
    certificate: str = ""
    key: str = field(default="", repr=False)

    def headers(self) -> Mapping[str, str]:
        """Asked for whenever the token may be another one."""
        value = self.authorization()
        headers = {"Authorization": value} if value else {}
        if not self.impersonation:
            return headers
        several = HTTPHeaderDict(headers)
        for name, value in self.impersonation:
            several.add(name, value)
        return several


def credentials_of(chosen: Chosen, *, secure: bool) -> Credentials:
    """Over a connection that anybody can read nothing but the impersonation is sent, as by kubectl.

    Raises `InputError`.
    """
    user = chosen.user
    impersonation = tuple(_impersonation(user))
    if not secure:
        return Credentials(lambda: "", impersonation)
    if user.token_file:
        return Credentials(token_in(Path(user.token_file), user.token), impersonation)
    static = _static(user)
    if static:
        return Credentials(lambda: static, impersonation)
    if user.exec is not None or user.auth_provider is not None:
        configuration = _by_library(chosen)
        return Credentials(
            lambda: _renewed(configuration, chosen.where_user),
            impersonation,
            str(configuration.cert_file or ""),
            str(configuration.key_file or ""),
        )
    if not user.client_certificate and not user.client_certificate_data:
        raise _unknown(chosen)
    return Credentials(lambda: "", impersonation)


def _unknown(chosen: Chosen) -> InputError:
    """kubectl asks for a name and a password then; an anonymous request is never what was meant."""
    if chosen.user_name and not chosen.user_file:
        return InputError(
            f'context "{chosen.context}" names a user that is not defined: "{chosen.user_name}"',
            where=chosen.paths,
            do="name one that is, or add it to the users of the kubeconfig",
        )
    return InputError(
        "the user has no credentials",
        where=chosen.where_user,
        do="add a token, a client certificate or an exec section",
    )


def token_in(file: Path, otherwise: str = "") -> Authorization:
    """The token in a file that is replaced while we run.

    While the file cannot be read, what was read last counts, and at first `otherwise`. Raises
    `InputError` when there is neither.
    """
    last = otherwise

    def authorization() -> str:
        nonlocal last
        try:
            token = file.read_bytes().decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            if not last:
                why = getattr(error, "strerror", None) or "it is not text"
                raise InputError(
                    "the token file cannot be read", where=str(file), why=why
                ) from None
        else:
            last = token or last
        if not last:
            raise InputError("the token file is empty", where=str(file))
        return f"Bearer {last}"

    authorization()
    return authorization


def _static(user: User) -> str:
    if user.token.strip():
        return f"Bearer {user.token.strip()}"
    if user.username:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        return f"Basic {pair}"
    return ""


def _impersonation(user: User) -> Iterator[tuple[str, str]]:
    if not user.impersonate:
        return
    yield "Impersonate-User", user.impersonate
    if user.impersonate_uid:
        yield "Impersonate-Uid", user.impersonate_uid
    for group in user.impersonate_groups:
        yield "Impersonate-Group", group
    for key, values in user.impersonate_extra.items():
        for value in values:
            yield f"Impersonate-Extra-{_escaped(key)}", value


def _escaped(key: str) -> str:
    return "".join(
        chr(byte) if chr(byte) in _UNESCAPED else f"%{byte:02X}" for byte in key.encode()
    )


def _by_library(chosen: Chosen) -> Configuration:
    """What the user's plugin or identity provider gives."""
    configuration = Configuration()
    with _plainly(chosen.where_user):
        if chosen.user.exec is not None:
            loader = _plugin_loader(chosen, chosen.user.exec)
        else:
            loader = _provider_loader(chosen)
        with _reported() as reports:
            loader._load_authentication()
            for name in ("cert_file", "key_file"):
                setattr(configuration, name, getattr(loader, name, None))
            loader._set_config(configuration)
    if reports:
        raise InputError(
            "the credential plugin gave no credentials",
            where=chosen.where_user,
            why=reports[-1],
            do="run its login command, or fix the user's exec section",
        )
    return configuration


def _plugin_loader(chosen: Chosen, plugin: Mapping[str, Any]) -> KubeConfigLoader:
    command = str(plugin["command"])
    if os.sep in command:  # else it is looked for on PATH
        command = str(Path(chosen.user_file).absolute().parent / command)
    config = {
        "current-context": "chosen",
        "contexts": [{"name": "chosen", "context": {"cluster": "chosen", "user": "chosen"}}],
        "clusters": [{"name": "chosen", "cluster": _cluster_information(chosen)}],
        "users": [{"name": "chosen", "user": {"exec": {**plugin, "command": command}}}],
    }
    return KubeConfigLoader(config)


def _cluster_information(chosen: Chosen) -> dict[str, Any]:
    """What a plugin is told of the cluster when it asks for it."""
    cluster = chosen.cluster
    authority = cluster.certificate_authority_data
    if cluster.certificate_authority:
        content = Path(cluster.certificate_authority).read_bytes()
        authority = base64.b64encode(content).decode()
    information = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": authority,
        "proxy-url": cluster.proxy_url,
        "extensions": cluster.extensions,
    }
    return {name: value for name, value in information.items() if value}


def _provider_loader(chosen: Chosen) -> KubeConfigLoader:
    """Reads the file once more, because renewed tokens are written back to it."""
    file = chosen.user_file
    merger = KubeConfigMerger(file)
    context = {"cluster": "chosen", "user": chosen.user_name}
    config = merger.config.value
    config["contexts"] = [ConfigNode("", {"name": "chosen", "context": context}, file)]
    config["clusters"] = [ConfigNode("", {"name": "chosen", "cluster": {}}, file)]
    return KubeConfigLoader(
        merger.config,
        active_context="chosen",
        config_base_path=None,
        config_persister=merger.save_changes,
    )


def _renewed(configuration: Configuration, where: str) -> str:
    try:
        value = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    except (ConfigException, OSError, ValueError) as error:
        raise InputError(
            "the credentials cannot be renewed", where=where, why=str(error)
        ) from error
    return str(value or "").strip()


@contextlib.contextmanager
def _plainly(where: str) -> Iterator[None]:
    """Turn the library's errors into ours; contents are never quoted."""
    what = "the user's credentials cannot be had"
    try:
        yield
    except ConfigException as error:
        raise InputError(what, where=where, why=str(error)) from error
    except OSError as error:
        why = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        raise InputError(what, where=where, why=why) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The library trusts a file's shape; these are what it trips over when it is another.
        why = "the exec or auth-provider section does not have its form"
        raise InputError(what, where=where, why=why) from error


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
