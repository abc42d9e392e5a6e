"""Kubeconfig files, as kubectl reads and merges them: which cluster is meant, and who we are there.

The first file that names a current context, or defines a cluster, user or context, wins. Paths in a
file are relative to that file. An empty text is as good as none.
"""

import base64
import binascii
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from captfctl.errors import InputError, Source
from captfctl.kubeyaml import Parsed, Place, Problem, documents

CHOOSE = "name one with --kubeconfig or the environment variable KUBECONFIG"
_FORM = "see `kubectl config view` for one that has the right form"
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


class Cluster(msgspec.Struct, rename="kebab"):
    """Where an API server is and how it proves to be that."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] = msgspec.field(default_factory=list)


class User(msgspec.Struct, rename="kebab"):
    """How somebody is known to API servers."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] = msgspec.field(default_factory=list, name="as-groups")
    impersonate_extra: dict[str, list[str]] = msgspec.field(
        default_factory=dict, name="as-user-extra"
    )
    username: str = ""
    password: str = ""
    auth_provider: dict[str, Any] | None = None
    exec: dict[str, Any] | None = None


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str = ""


class _NamedCluster(msgspec.Struct):
    name: str = ""
    cluster: Cluster = msgspec.field(default_factory=Cluster)


class _NamedUser(msgspec.Struct):
    name: str = ""
    user: User = msgspec.field(default_factory=User)


class _NamedContext(msgspec.Struct):
    name: str = ""
    context: _Context = msgspec.field(default_factory=_Context)


class _File(msgspec.Struct, rename="kebab"):
    kind: str = "Config"
    api_version: str = msgspec.field(default="v1", name="apiVersion")
    current_context: str = ""
    clusters: list[_NamedCluster] = msgspec.field(default_factory=list)
    users: list[_NamedUser] = msgspec.field(default_factory=list)
    contexts: list[_NamedContext] = msgspec.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A context and what it names, with absolute paths. Without a user, requests are anonymous.

    `user_file` is the file that defines the user; `paths` names all files, for messages.
    """

    context: str
    cluster_name: str
    cluster: Cluster
    user_name: str
    user: User
    user_file: str
    paths: str

    @property
    def where_cluster(self) -> str:
        return f'{self.paths}, cluster "{self.cluster_name}"'

    @property
    def where_user(self) -> str:
        return f'{self.paths}, user "{self.user_name}"'


@dataclass(slots=True)
class _Merged:
    """What several files say together; each definition with its file."""

    current: str = ""
    clusters: dict[str, tuple[Cluster, str]] = field(default_factory=dict)
    users: dict[str, tuple[User, str]] = field(default_factory=dict)
    contexts: dict[str, tuple[_Context, str]] = field(default_factory=dict)


def files_named(path: str | None, environ: Mapping[str, str]) -> list[str]:
    """The files of `--kubeconfig`, which is one, or of `$KUBECONFIG`; empty when neither is set."""
    if path:
        return [path]
    named = environ.get("KUBECONFIG", "").split(os.pathsep)
    return list(dict.fromkeys(one for one in named if one))


def choose(files: list[str], context: str | None) -> Chosen:
    """The context named `context`, or the current one.

    Raises `InputError` saying what keeps it from being used.
    """
    paths = os.pathsep.join(files)
    merged = _Merged()
    found = 0
    for file in files:
        if parsed := _read(Path(file).expanduser()):
            _merge(merged, parsed, str(Path(file).expanduser()))
            found += 1
    if not found:
        raise InputError(f"kubeconfig {paths} does not exist", do=f"check the path, or {CHOOSE}")
    chosen = _chosen(merged, context, paths)
    _check_cluster(chosen)
    _check_user(chosen)
    return chosen


def _chosen(merged: _Merged, wanted: str | None, paths: str) -> Chosen:
    names = ", ".join(merged.contexts)
    name = wanted or merged.current
    if not name:
        do = "choose one with --context" + (f": it has {names}" if names else "")
        raise InputError("the kubeconfig has no current context", where=paths, do=do)
    if name not in merged.contexts:
        raise InputError(
            f'the kubeconfig has no context "{name}"',
            where=paths,
            do=f"use one of {names}" if names else CHOOSE,
        )
    context, _ = merged.contexts[name]
    if context.cluster not in merged.clusters:
        raise InputError(
            f'context "{name}" names a cluster that is not defined: "{context.cluster}"',
            where=paths,
            do="name one that is, or add it to the clusters of the kubeconfig",
        )
    cluster, cluster_file = merged.clusters[context.cluster]
    user, user_file = merged.users.get(context.user, (User(), ""))
    return Chosen(
        context=name,
        cluster_name=context.cluster,
        cluster=_with_paths(cluster, cluster_file, ("certificate_authority",)),
        user_name=context.user,
        user=_with_paths(user, user_file, ("client_certificate", "client_key", "token_file")),
        user_file=user_file,
        paths=paths,
    )


T = TypeVar("T", Cluster, User)


def _with_paths(struct: T, file: str, names: tuple[str, ...]) -> T:
    """Relative paths are relative to the directory of `file`."""
    base = Path(file).absolute().parent
    absolute = {name: str(base / getattr(struct, name)) for name in names if getattr(struct, name)}
    return msgspec.structs.replace(struct, **absolute)


def _read(path: Path) -> _File | None:
    """None when the file does not exist. Its contents are never quoted."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(str(path), str(error.strerror)) from None
    except UnicodeDecodeError:
        raise _unusable(str(path), "it is not UTF-8 text") from None
    problems: list[Problem] = []
    found = [parsed for parsed in documents(text, problems) if parsed.value is not None]
    for problem in problems:
        # A path is made of keys; a message may quote a key, which is no place for a secret.
        where = str(Source(str(path), problem.line))
        raise _unusable(where, f"{problem.path}: {problem.message}".removeprefix(": "))
    if len(found) > 1:
        raise _unusable(str(Source(str(path), found[1].place.line)), "it has a second document")
    return _typed(found[0], path) if found else _File()


def _typed(parsed: Parsed, path: Path) -> _File:
    try:
        file = msgspec.convert(_without_nulls(parsed.value), _File)
    except msgspec.ValidationError as error:
        what, _, at = str(error).partition(" - at `$")
        line = _line(parsed.place, at.rstrip("`"))
        field_ = at.strip("`.")
        why = f"{field_}: {what}" if field_ else "it is not an object"
        raise _unusable(str(Source(str(path), line)), why, _FORM) from None
    if file.kind != "Config" or file.api_version != "v1":
        raise _unusable(str(path), "it is not a Config of v1", _FORM)
    return file


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [{} if item is None else _without_nulls(item) for item in value]
    return value


def _line(place: Place, path: str) -> int:
    for name, index in _STEP.findall(path):
        step = int(index) if index else name
        if step not in place.below:
            break
        place = place.below[step]
    return place.line


def _merge(merged: _Merged, file: _File, path: str) -> None:
    merged.current = merged.current or file.current_context
    _add(merged.clusters, ((one.name, one.cluster) for one in file.clusters), path, "cluster")
    _add(merged.users, ((one.name, one.user) for one in file.users), path, "user")
    _add(merged.contexts, ((one.name, one.context) for one in file.contexts), path, "context")


D = TypeVar("D", Cluster, User, _Context)


def _add(
    known: dict[str, tuple[D, str]], found: Iterable[tuple[str, D]], path: str, what: str
) -> None:
    names = set()
    for name, definition in found:
        if name in names:
            raise _unusable(path, f'{what} "{name}" is defined twice')
        names.add(name)
        known.setdefault(name, (definition, path))


def _check_cluster(chosen: Chosen) -> None:
    cluster = chosen.cluster
    where = chosen.where_cluster
    server = urlsplit(cluster.server)
    if server.scheme not in ("https", "http") or not server.hostname:
        shown = cluster.server if server.username is None else "what it says"
        raise InputError(
            f'"{shown}" is not the URL of a server',
            where=where,
            do="write it with its scheme: https://HOST:PORT",
        )
    if server.username is not None:
        raise InputError(
            "the server's address holds a name or a password",
            where=where,
            do="move them to the user's username and password",
        )
    if cluster.certificate_authority and cluster.certificate_authority_data:
        raise _both("certificate-authority", "certificate-authority-data", where)
    authority = cluster.certificate_authority or cluster.certificate_authority_data
    if cluster.insecure_skip_tls_verify and authority and server.scheme == "https":
        raise _both("insecure-skip-tls-verify", "a certificate authority", where)


def _check_user(chosen: Chosen) -> None:
    user, where = chosen.user, chosen.where_user
    if user.token and (user.username or user.password):
        raise _both("token", "username or password", where)
    if user.client_certificate or user.client_certificate_data:
        if user.client_certificate and user.client_certificate_data:
            raise _both("client-certificate", "client-certificate-data", where)
        if user.client_key and user.client_key_data:
            raise _both("client-key", "client-key-data", where)
        if not user.client_key and not user.client_key_data:
            raise InputError("a client certificate has no client-key", where=where)
    if user.exec is not None and user.auth_provider is not None:
        raise _both("exec", "auth-provider", where)
    extra = user.impersonate_uid or user.impersonate_groups or user.impersonate_extra
    if extra and not user.impersonate:
        raise InputError(
            "as-uid, as-groups and as-user-extra need as",
            where=where,
            do="say in as whom to impersonate",
        )
    if user.exec is not None:
        _check_exec(user.exec, where)


def _check_exec(plugin: Mapping[str, Any], where: str) -> None:
    for name in ("command", "apiVersion"):
        if not plugin.get(name):
            raise InputError(f"the user's exec section has no {name}", where=where)
    mode = plugin.get("interactiveMode") or ""
    if not mode and not str(plugin["apiVersion"]).endswith("beta1"):
        raise InputError(
            "the user's exec section has no interactiveMode",
            where=where,
            do="write interactiveMode: IfAvailable",
        )
    if mode not in ("", "Never", "IfAvailable", "Always"):
        raise InputError(
            f'the user\'s exec section has an unknown interactiveMode "{mode}"',
            where=where,
            do="use Never, IfAvailable or Always",
        )


def server_url(cluster: Cluster) -> str:
    """The address that paths are added to."""
    parts = urlsplit(cluster.server)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def decoded(data: str, field_: str, where: str) -> bytes:
    """What a `*-data` field holds."""
    try:
        return base64.b64decode(data.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise InputError(
            f"{field_} is not base64", where=where, do=f"put the content of the file into {field_}"
        ) from None


def _both(one: str, other: str, where: str) -> InputError:
    return InputError(
        f"{one} and {other} are both given", where=where, why="kubectl allows one of them only"
    )


def _unusable(where: str, why: str, do: str = "") -> InputError:
    return InputError("the kubeconfig cannot be used", where=where, why=why, do=do)
