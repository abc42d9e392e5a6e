"""The headers by which an API server knows us.

A token file is read again while we run, and wins over a token. Credential plugins and identity
providers are in `captfctl.cluster.plugins`.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
        # The library takes as long to import as everything else, and few users need it.
        from captfctl.cluster.plugins import plugin_credentials

        given = plugin_credentials(chosen)
        return Credentials(given.authorization, impersonation, given.certificate, given.key)
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
