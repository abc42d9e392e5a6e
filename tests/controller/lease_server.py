"""A server with one Lease, and electors that contend for it."""

import threading

from captfctl.cluster.errors import AlreadyExists, Conflict, NotFound, Unavailable
from captfctl.controller import ElectionSettings, LeaderElector
from captfctl.model.core import Lease, LeaseSpec
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import LEASES
from tests.support.clock import DEADLINE

NAME, NAMESPACE = "controller-leader-election-captf", "captf-system"


class LeaseServer:
    """One Lease, with versions. A test may cut requests off before or after they take effect."""

    def __init__(self):
        self.lease: Lease | None = None
        self.version = 0
        self.cut_before = self.cut_after = False
        self.hang: threading.Event | None = None

    def get(self, resource, name, namespace):
        self._before()
        if self.lease is None:
            raise NotFound(name)
        return LEASES.copy(self.lease)

    def create(self, resource, obj, namespace):
        self._before()
        if self.lease is not None:
            raise AlreadyExists(NAME)
        self._store(LEASES.copy(obj))
        return self._answer()

    def patch(self, resource, name, namespace, patch, *, resource_version):
        self._before()
        if self.lease is None:
            raise NotFound(name)
        if resource_version != self.lease.metadata.resource_version:
            raise Conflict("stale")
        names = {
            "holderIdentity": "holder_identity",
            "leaseDurationSeconds": "lease_duration_seconds",
            "acquireTime": "acquire_time",
            "renewTime": "renew_time",
            "leaseTransitions": "lease_transitions",
        }
        changed = LEASES.copy(self.lease)
        for key, value in patch["spec"].items():
            setattr(changed.spec, names[key], value)
        self._store(changed)
        return self._answer()

    def hold(self, holder, *, duration=15, renewed="2026-09-25T12:00:00.000000Z"):
        """Somebody else writes the Lease."""
        spec = LeaseSpec(
            holder_identity=holder, lease_duration_seconds=duration, renew_time=renewed
        )
        self._store(Lease(metadata=ObjectMeta(name=NAME, namespace=NAMESPACE), spec=spec))

    @property
    def holder(self):
        return self.lease.spec.holder_identity if self.lease else ""

    def _store(self, lease):
        self.version += 1
        lease.metadata.resource_version = str(self.version)
        self.lease = lease

    def _before(self):
        if self.hang is not None:
            self.hang.wait(DEADLINE)
        if self.cut_before:
            raise Unavailable("refused")

    def _answer(self):
        if self.cut_after:
            raise Unavailable("reset", outcome_unknown=True)
        return LEASES.copy(self.lease)


class Calls:
    def __init__(self):
        self.started, self.lost = threading.Event(), threading.Event()


def elector(server, clock, identity="me", calls=None, settings=None):
    calls = calls or Calls()
    return LeaderElector(
        server,
        NAME,
        NAMESPACE,
        identity,
        settings or ElectionSettings(),
        clock,
        on_started=calls.started.set,
        on_lost=calls.lost.set,
    )
