"""Everything that the manager can be told: each setting with its flag, its default, and why.

`captfctl manage` makes its options from these classes, and `make reference` a page of the
documentation. A field's name is the flag's name with `_` for `-`; a field without a `Flag` is not
on the command line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Annotated, Any, get_type_hints

from captfctl.errors import InputError
from captfctl.model.kinds import CLUSTER, MACHINE, MACHINE_POOL

START_PATIENCE = timedelta(seconds=18)
"""Long enough for most API servers that are started again. A leader ends sooner when it cannot
renew its Lease; after SIGTERM the manager waits a little longer than this for running passes."""

TLS_VERSIONS = ("VersionTLS12", "VersionTLS13")
"""Of the four names that Kubernetes knows, the two that Python's TLS still offers."""

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-fA-F]{32,})?"
)


_CONCURRENCIES = (
    "terraformcluster_concurrency",
    "terraformmachine_concurrency",
    "terraformmachinepool_concurrency",
    "terraformclusteridentity_concurrency",
    "terraformmachinetemplate_concurrency",
)


@dataclass(frozen=True, slots=True)
class Flag:
    """How a setting is given on the command line.

    `why` is the reason of its default. `value` stands for the value in the help; booleans have
    none. `variable` names the environment variable that is read without the flag.
    """

    help: str
    why: str
    value: str = ""
    variable: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of a class of settings that has a flag."""

    name: str
    type: type
    default: Any
    flag: Flag

    @property
    def option(self) -> str:
        return flag_name(self.name)


def flag_name(name: str) -> str:
    """The flag of the field of this name."""
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True, kw_only=True)
class PassSettings:
    """What a pass depends on."""

    runner_image: Annotated[
        str,
        Flag(
            "Image that holds the runner, as /runner.",
            "the manager's own image, which holds it; the manifests set the variable",
            "REF",
            variable="CAPTF_MANAGER_IMAGE",
        ),
    ]
    runner_events: Annotated[
        bool,
        Flag(
            "Let runners post progress events.",
            "they show what a run does while it runs",
        ),
    ] = True
    drift_default_interval: Annotated[
        timedelta,
        Flag(
            "How often objects that name no interval are checked for drift.",
            "a change made by hand is found within the hour, and the provider's API is not asked "
            "more than that needs",
            "DURATION",
        ),
    ] = timedelta(minutes=30)
    cluster_operation_gate: Annotated[
        bool,
        Flag(
            "Never change a cluster and one of its machines at the same time.",
            "a machine's apply may depend on what its cluster's apply changes",
        ),
    ] = True
    max_active_jobs: Annotated[
        int,
        Flag(
            "Jobs at a time; 0: no limit.",
            "many objects that are due at once, as after an upgrade, do not fill the cluster with "
            "pods",
            "N",
        ),
    ] = 200
    cluster_max_active_jobs: Annotated[
        int,
        Flag(
            "Jobs at a time for one cluster; 0: no limit.",
            "the machines of a cluster share one account, whose API limits how much it is asked",
            "N",
        ),
    ] = 20
    state_backups: Annotated[
        int,
        Flag(
            "Backups of each object's Terraform state to keep; 0: take none, and keep those there "
            "are.",
            "a mistake is often found some changes later, and a backup is as large as its state",
            "N",
        ),
    ] = 5
    start_patience: timedelta = timedelta(0)
    """For how long a server that is away is waited for in the middle of a start."""


@dataclass(frozen=True, kw_only=True)
class ManagerSettings(PassSettings):
    """What the process depends on. `validate` refuses what makes no sense; nothing does before.

    Addresses are `host:port` or `:port`; an empty one switches that server off, port 0 takes a free
    port. `lease_namespace`, `identity` are the manager's own namespace and its name among several.
    """

    namespace: Annotated[
        str,
        Flag(
            "Reconcile this namespace only; empty: all.",
            "the manifests give it rights in all of them",
            "NAME",
        ),
    ] = ""
    watch_filter: Annotated[
        str,
        Flag(
            "Reconcile only objects whose label cluster.x-k8s.io/watch-filter is this.",
            "a cluster usually has one manager, and it reconciles all objects",
            "VALUE",
        ),
    ] = ""
    sync_period: Annotated[
        timedelta,
        Flag(
            "How often every object is looked at again.",
            "as Cluster API's managers; changes arrive by watches, long before",
            "DURATION",
        ),
    ] = timedelta(minutes=10)
    terraformcluster_concurrency: Annotated[
        int,
        Flag(
            "TerraformClusters reconciled at a time.",
            "a pass mostly waits for the API server, so that more would hardly be faster",
            "N",
        ),
    ] = 10
    terraformmachine_concurrency: Annotated[
        int,
        Flag(
            "TerraformMachines reconciled at a time.",
            "a pass mostly waits for the API server, so that more would hardly be faster",
            "N",
        ),
    ] = 10
    terraformmachinepool_concurrency: Annotated[
        int,
        Flag(
            "TerraformMachinePools reconciled at a time.",
            "a pass mostly waits for the API server, so that more would hardly be faster",
            "N",
        ),
    ] = 10
    terraformclusteridentity_concurrency: Annotated[
        int,
        Flag(
            "TerraformClusterIdentities reconciled at a time.",
            "there are few identities, and their passes are short",
            "N",
        ),
    ] = 4
    terraformmachinetemplate_concurrency: Annotated[
        int,
        Flag(
            "TerraformMachineTemplates reconciled at a time.",
            "there are few templates, and their passes are short",
            "N",
        ),
    ] = 2
    leader_elect: Annotated[
        bool,
        Flag(
            "Work only while holding the leader's Lease.",
            "one manager on a laptop needs no Lease; the manifests switch it on",
        ),
    ] = False
    leader_elect_lease_duration: Annotated[
        timedelta,
        Flag(
            "How long others wait for a leader that went silent.",
            "as in client-go",
            "DURATION",
        ),
    ] = timedelta(seconds=15)
    leader_elect_renew_deadline: Annotated[
        timedelta,
        Flag(
            "How long the leader tries to renew its Lease before it ends.",
            "as in client-go: 5 s before others may take the Lease",
            "DURATION",
        ),
    ] = timedelta(seconds=10)
    leader_elect_retry_period: Annotated[
        timedelta,
        Flag(
            "Time between tries to acquire or renew the Lease.",
            "as in client-go: several tries before the deadline",
            "DURATION",
        ),
    ] = timedelta(seconds=2)
    health_addr: Annotated[
        str,
        Flag(
            "Address of /livez, /healthz and /readyz; empty: off.",
            "the port of Cluster API's managers",
            "ADDR",
        ),
    ] = ":9440"
    diagnostics_address: Annotated[
        str,
        Flag(
            "Address of /metrics; empty: off.",
            "the port of Cluster API's managers",
            "ADDR",
        ),
    ] = ":8443"
    insecure_diagnostics: Annotated[
        bool,
        Flag(
            "Serve /metrics over plain HTTP, to everybody.",
            "metrics name objects and namespaces",
        ),
    ] = False
    tls_min_version: Annotated[
        str,
        Flag(
            "Lowest TLS version of /metrics: VersionTLS12 or VersionTLS13.",
            "older versions are deprecated, and some clients do not have a newer one",
            "VERSION",
        ),
    ] = "VersionTLS12"
    lease_namespace: str = ""
    identity: str = "captf-manager"
    start_patience: timedelta = field(default=START_PATIENCE)

    @property
    def workers(self) -> int:
        """All workers of all kinds."""
        return sum(getattr(self, name) for name in _CONCURRENCIES)

    @property
    def concurrency(self) -> dict[str, int]:
        """How many objects of each kind are reconciled at a time."""
        return {
            CLUSTER.name: self.terraformcluster_concurrency,
            MACHINE.name: self.terraformmachine_concurrency,
            MACHINE_POOL.name: self.terraformmachinepool_concurrency,
        }

    def validate(self) -> None:
        """Raises one `InputError` that names every flag that cannot be used."""
        problems = list(self._problems())
        if problems:
            raise InputError(
                f"manager: invalid flags: {'; '.join(problems)}",
                do="correct them and start again",
            )

    def _problems(self) -> Iterator[str]:
        yield from self._image_problems()
        for name in _CONCURRENCIES:
            if getattr(self, name) < 1:
                yield f"{flag_name(name)} must be at least 1"
        for name in ("max_active_jobs", "cluster_max_active_jobs"):
            if getattr(self, name) < 0:
                yield f"{flag_name(name)} must not be negative; 0 means no limit"
        if self.state_backups < 0:
            yield "--state-backups must not be negative; 0 means that none are taken"
        for name in ("sync_period", "drift_default_interval"):
            if getattr(self, name) <= timedelta(0):
                yield f"{flag_name(name)} must be more than zero"
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
                yield f"{flag_name(name)} {text!r} is not host:port"


def settings_with_flags(kind: type[PassSettings]) -> tuple[Setting, ...]:
    """The settings of a class that are on the command line, in the order of its fields."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        Setting(entry.name, hints[entry.name].__origin__, entry.default, flag)
        for entry in fields(kind)
        for flag in getattr(hints[entry.name], "__metadata__", ())
        if isinstance(flag, Flag)
    )


def parse_address(text: str) -> tuple[str, int] | None:
    """Host (empty: all interfaces) and port; None for what is not an address."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        return None
    return host.strip("[]"), int(port)
