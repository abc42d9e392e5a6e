"""The door to a real Kubernetes API server, over HTTP."""

from captfctl.clock import Clock
from captfctl.cluster.door import Door


class LiveDoor(Door):
    """Configuration, authentication and TLS come from the `kubernetes` library."""

    @classmethod
    def from_kubeconfig(
        cls,
        path: str | None = None,
        context: str | None = None,
        *,
        field_owner: str = "captfctl",
        pool_size: int = 32,
        clock: Clock | None = None,
    ) -> "LiveDoor":
        """From a kubeconfig file (None: `$KUBECONFIG`, `~/.kube/config`, then in-cluster).

        Raises `InputError` when it is missing, unreadable, or names what it does not define.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the idle connections."""
