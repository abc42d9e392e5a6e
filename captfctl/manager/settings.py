"""Everything the manager can be told, with its defaults (50 §16.2).

A name here is the flag's name with `_` for `-`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from captfctl.errors import InputError
from captfctl.reconcile import Settings as PassSettings

LEASE_NAME = "controller-leader-election-captf"
GRACEFUL_SHUTDOWN = 20.0
"""Seconds that workers get to finish their passes. Not a flag (50 §1)."""

START_PATIENCE = timedelta(seconds=18)
"""Long enough for most API servers that are started again. A leader ends sooner when it cannot
renew its Lease; after SIGTERM `GRACEFUL_SHUTDOWN` is the limit."""

TLS_VERSIONS = ("VersionTLS12", "VersionTLS13")
"""Of the four names that Kubernetes knows, the two that Python's TLS still offers."""

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-fA-F]{32,})?"
)


@dataclass(frozen=True, kw_only=True)
class ManagerSettings:
    """`validate` refuses what makes no sense; nothing is checked before.

    Addresses are `host:port` or `:port`; an empty one switches that server off, port 0 takes a free
    port. `lease_namespace`, `identity` are the manager's own namespace and its name among several.
    """

    runner_image: str
    namespace: str = ""
    watch_filter: str = ""
    sync_period: timedelta = timedelta(minutes=10)
    terraformcluster_concurrency: int = 10
    terraformclusteridentity_concurrency: int = 4
    health_addr: str = ":9440"
    leader_elect: bool = False
    leader_elect_lease_duration: timedelta = timedelta(seconds=15)
    leader_elect_renew_deadline: timedelta = timedelta(seconds=10)
    leader_elect_retry_period: timedelta = timedelta(seconds=2)
    runner_events: bool = True
    drift_default_interval: timedelta = timedelta(minutes=30)
    cluster_operation_gate: bool = True
    max_active_jobs: int = 200
    cluster_max_active_jobs: int = 20
    diagnostics_address: str = ":8443"
    insecure_diagnostics: bool = False
    tls_min_version: str = "VersionTLS12"
    lease_namespace: str = ""
    identity: str = "captf-manager"

    def validate(self) -> None:
        """Raises one `InputError` that names every flag that cannot be used."""
        problems = list(self._problems())
        if problems:
            raise InputError(
                f"manager: invalid flags: {'; '.join(problems)}",
                do="correct them and start again",
            )

    @property
    def for_passes(self) -> PassSettings:
        """The part that a pass depends on."""
        return PassSettings(
            runner_image=self.runner_image,
            runner_events=self.runner_events,
            drift_default_interval=self.drift_default_interval,
            cluster_operation_gate=self.cluster_operation_gate,
            max_active_jobs=self.max_active_jobs,
            cluster_max_active_jobs=self.cluster_max_active_jobs,
            start_patience=START_PATIENCE,
        )

    def _problems(self) -> Iterator[str]:
        yield from self._image_problems()
        for name in ("terraformcluster_concurrency", "terraformclusteridentity_concurrency"):
            if getattr(self, name) < 1:
                yield f"{_flag(name)} must be at least 1"
        for name in ("max_active_jobs", "cluster_max_active_jobs"):
            if getattr(self, name) < 0:
                yield f"{_flag(name)} must not be negative; 0 means no limit"
        for name in ("sync_period", "drift_default_interval"):
            if getattr(self, name) <= timedelta(0):
                yield f"{_flag(name)} must be more than zero"
        yield from self._election_problems()
        yield from self._address_problems()
        if self.tls_min_version not in TLS_VERSIONS:
            yield f"--tls-min-version must be one of {', '.join(TLS_VERSIONS)}"

    def _image_problems(self) -> Iterator[str]:
        if not self.runner_image:
            yield "--runner-image is empty: set it, or CAPTF_MANAGER_IMAGE"
        elif _IMAGE.fullmatch(self.runner_image) is None:
            yield f"--runner-image {self.runner_image!r} is not an image reference"

    def _election_problems(self) -> Iterator[str]:
        if not self.leader_elect:
            return
        lease, renew = self.leader_elect_lease_duration, self.leader_elect_renew_deadline
        if not lease > renew > self.leader_elect_retry_period > timedelta(0):
            yield (
                "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, "
                "and that longer than --leader-elect-retry-period, which must be more than zero"
            )
        if not self.lease_namespace:
            yield "--leader-elect needs the manager's own namespace: set POD_NAMESPACE"

    def _address_problems(self) -> Iterator[str]:
        for name in ("health_addr", "diagnostics_address"):
            text = getattr(self, name)
            if text and parse_address(text) is None:
                yield f"{_flag(name)} {text!r} is not host:port"


def parse_address(text: str) -> tuple[str, int] | None:
    """Host (empty: all interfaces) and port; None for what is not an address."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        return None
    return host.strip("[]"), int(port)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
