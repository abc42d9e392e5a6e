"""ServiceAccount tokens of one pod, requested and renewed as a kubelet does."""

from dataclasses import dataclass

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.embedded.agent.access import ApiAccess
from captfctl.errors import CaptfError
from captfctl.model.core import Pod, TokenRequest
from captfctl.model.meta import parse_time
from captfctl.model.resources import SERVICE_ACCOUNTS

_DEFAULT_SECONDS = 3607
"""What admission asks for in the volume it adds."""

_RENEW_AT = 0.8
"""The part of its life after which a token is renewed."""


@dataclass(frozen=True)
class _Held:
    text: str
    renew_at: float


class Tokens:
    """Tokens by audience. With an API that has one token for all, that one."""

    def __init__(self, door: Door, pod: Pod, access: ApiAccess, clock: Clock) -> None:
        self._door = door
        self._pod = pod
        self._access = access
        self._clock = clock
        self._held: dict[tuple[str, int], _Held] = {}

    @property
    def renew_at(self) -> float | None:
        """When a token has to be renewed next, as a Unix time; None: never."""
        return min((held.renew_at for held in self._held.values()), default=None)

    def get(self, audience: str = "", seconds: int | None = None) -> str:
        """A token, at least a fifth of its life before its end. Raises what the door raises, and
        `CaptfError` when the shared token cannot be read.
        """
        if self._access.token_path is not None:
            try:
                return self._access.token_path.read_text().strip()
            except OSError as problem:
                raise CaptfError(f"the API token cannot be read: {problem}") from None
        key = (audience, seconds or _DEFAULT_SECONDS)
        held = self._held.get(key)
        if held is None or held.renew_at <= self._clock.now().timestamp():
            held = self._held[key] = self._request(*key)
        return held.text

    def _request(self, audience: str, seconds: int) -> _Held:
        metadata = self._pod.metadata
        spec = {
            "audiences": [audience] if audience else [],
            "expirationSeconds": seconds,
            "boundObjectRef": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata.name,
                "uid": metadata.uid,
            },
        }
        asked = TokenRequest(api_version="authentication.k8s.io/v1", kind="TokenRequest", spec=spec)
        account = self._pod.spec.service_account_name or "default"
        answer = self._door.create_subresource(
            SERVICE_ACCOUNTS, account, metadata.namespace, "token", asked, TokenRequest
        )
        now = self._clock.now().timestamp()
        expires = parse_time(str(answer.status.get("expirationTimestamp", "")))
        life = expires.timestamp() - now if expires else float(seconds)
        return _Held(str(answer.status["token"]), now + life * _RENEW_AT)
