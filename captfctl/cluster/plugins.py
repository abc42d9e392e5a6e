"""Credentials that a plugin or an identity provider gives.

Running plugins and renewing what a provider gave is the `kubernetes` library's work; here its ways
to fail are told apart, and no failure is passed over: a plugin that fails is an error and not an
anonymous request.
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

from captfctl.cluster.kubeconfig import Chosen
from captfctl.errors import InputError


@dataclass(frozen=True, slots=True)
class PluginCredentials:
    """What a plugin or identity provider gave. A certificate and its key are in PEM files."""

    authorization: Callable[[], str]
    certificate: str
    key: str = field(repr=False)


def plugin_credentials(chosen: Chosen) -> PluginCredentials:
    """Raises `InputError`; the authorization does, too, when it cannot be renewed."""
    configuration = _configuration(chosen)
    return PluginCredentials(
        lambda: _renewed(configuration, chosen.where_user),
        str(configuration.cert_file or ""),
        str(configuration.key_file or ""),
    )


def _configuration(chosen: Chosen) -> Configuration:
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
