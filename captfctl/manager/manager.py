"""The controller process as an object."""

import logging
import os
import threading
from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.controller import Controller, ElectionSettings, LeaderElector, Result, WorkQueue
from captfctl.errors import CaptfError
from captfctl.manager import endpoints
from captfctl.manager.caches import Caches, InformerReader
from captfctl.manager.certificate import serving_context
from captfctl.manager.events import QueuedRecorder
from captfctl.manager.health import Health, probes
from captfctl.manager.identity import IdentityReconciler
from captfctl.manager.metrics import PrometheusMetrics
from captfctl.manager.sweeper import Sweeper
from captfctl.manager.templates import TemplateReconciler
from captfctl.manager.watches import (
    connect,
    connect_identities,
    connect_pods,
    connect_slots,
    connect_templates,
)
from captfctl.manager.work_metrics import NamedQueueMetrics, WorkMetrics
from captfctl.model.kinds import KINDS
from captfctl.model.resources import TERRAFORM_CLUSTER_IDENTITIES, TERRAFORM_MACHINE_TEMPLATES
from captfctl.reconcile.env import Env
from captfctl.reconcile.kept_pods import release_pods
from captfctl.reconcile.passes import reconcile
from captfctl.runs.slots import SlotOwner, Slots
from captfctl.serving.http import HttpServer
from captfctl.settings import ManagerSettings, parse_address
from captfctl.terraform.contract.module_variables import SchemaOf, no_schema

Key = tuple[str, str]
_Reconcile = Callable[[Key], Result]

LEASE_NAME = "controller-leader-election-captf"
GRACEFUL_SHUTDOWN = 20.0
"""Seconds that workers get to finish their passes."""

_PATIENT_PART = 0.6
"""Of the time that a stop may take: so long passes may wait for the server."""

IDENTITIES = TERRAFORM_CLUSTER_IDENTITIES.kind
TEMPLATES = TERRAFORM_MACHINE_TEMPLATES.kind
PODS = "Pod"
_POD_WORKERS = 2

log = logging.getLogger(__name__)


class LeadershipLost(CaptfError):
    """Another manager may lead now: this process must end."""

    code = "LeadershipLost"


class Manager:
    """Reconciles every object that `settings` let it see, from `start` to `stop`.

    Several may live in one process: each has its own caches, threads and metrics registry. Jobs
    that run are never touched by a stop; the next manager adopts them.
    """

    def __init__(
        self,
        door: Door,
        settings: ManagerSettings,
        clock: Clock,
        abandon: Callable[[], None] = lambda: None,
        schema_of: SchemaOf = no_schema,
    ) -> None:
        """`abandon` ends what waits for an answer of `door`: a stop that takes long does so.
        `schema_of` tells the variables of a module, where that is known without running it.

        Raises `InputError` for settings that make no sense, `EnvironmentFault` for an address that
        cannot be served on.
        """
        settings.validate()
        self.settings = settings
        self.registry = CollectorRegistry()
        self._door, self._clock, self._abandon = door, clock, abandon
        self._schema_of = schema_of
        self._caches = Caches(door, settings, clock)
        self._recorder = QueuedRecorder(door, clock, settings.identity)
        self._work = WorkMetrics(self.registry)
        self._reader = InformerReader(self._caches)
        self._slots = Slots(door, self._reader, clock, settings.max_active_jobs, self._call)
        self._health = Health(self._caches)
        self._controllers = self._make_controllers()
        self._health.watch_over({c.name: c.queue for c in self._controllers.values()})
        self._sweeper = Sweeper(door, settings, clock, self._controllers[PODS].queue.add)
        self._servers = self._make_servers()
        self._elector = self._make_elector() if settings.leader_elect else None
        self._ended = threading.Event()
        self._stopped = threading.Event()
        self._stopping = threading.Lock()
        self._failure: CaptfError | None = None
        self._gate = threading.Thread(target=self._begin, name="manager", daemon=True)

    def start(self) -> None:
        """Return at once: caches fill, and the election goes on, in threads of the manager."""
        for server in self._servers.values():
            server.start()
        self._recorder.start()
        self._caches.start()
        if self._elector is not None:
            self._elector.start()
        else:
            self._gate.start()

    def wait(self, timeout: float | None = None) -> None:
        """Until the manager is stopped or lost the election, or `timeout` seconds passed.

        Raises `LeadershipLost`.
        """
        self._ended.wait(timeout)
        if self._failure is not None:
            raise self._failure

    def stop(self, timeout: float = GRACEFUL_SHUTDOWN) -> bool:
        """Take no more work, let passes end, release the Lease; tell whether every pass ended in
        `timeout` seconds. May be called more than once."""
        with self._stopping:
            if self._ended.is_set() and self._failure is None:
                return True
            until = self._clock.monotonic() + timeout
            self._begin_to_hurry(timeout * _PATIENT_PART)
            ended = self._stop_workers(until)
            if self._elector is not None:
                # Only now: the next leader must not meet a pass of ours.
                ended = self._elector.stop(self._left(until, least=1.0)) and ended
            self._sweeper.stop(self._left(until))
            self._recorder.stop(self._left(until, least=0.5))
            self._caches.stop(self._left(until, least=0.5))
            for server in self._servers.values():
                server.stop()
            self._ended.set()
            self._stopped.set()
            return ended

    def _begin_to_hurry(self, seconds: float) -> None:
        """Passes that are still held up by the server then would not end in time."""

        def hurry() -> None:
            if not self._clock.wait(self._stopped, seconds):
                log.warning("ending: requests that wait for an answer are given up")
                self._abandon()

        threading.Thread(target=hurry, name="hurry", daemon=True).start()

    @property
    def ready(self) -> bool:
        """What `/readyz` says."""
        return not self._health.ready()

    @property
    def leading(self) -> bool:
        """Whether this process reconciles now."""
        return self._elector is None or self._elector.leading

    def port(self, server: str) -> int:
        """The port of the `health` or the `diagnostics` server. Raises `KeyError` for one that is
        switched off."""
        return self._servers[server].port

    def _left(self, until: float, *, least: float = 0.0) -> float:
        return max(least, until - self._clock.monotonic())

    def _stop_workers(self, until: float) -> bool:
        for controller in self._controllers.values():
            controller.queue.shut_down()  # all at once: each then has the whole time
        ended = [controller.stop(self._left(until)) for controller in self._controllers.values()]
        return all(ended)

    def _make_controllers(self) -> dict[str, Controller[Key]]:
        """By kind."""
        env = Env(
            door=self._door,
            cache=self._reader,
            clock=self._clock,
            settings=self.settings,
            recorder=self._recorder,
            metrics=PrometheusMetrics(self.registry, self._caches.running_jobs),
            random_bytes=os.urandom,
            slots=self._slots,
            schema_of=self._schema_of,
        )
        identities = IdentityReconciler(self._door, self._caches, self._clock, self._recorder)

        def pods(key: Key) -> Result:
            return release_pods(self._door, key, self._clock.now())

        made = {
            kind: self._controller(kind.lower(), partial(reconcile, KINDS[kind], env=env), workers)
            for kind, workers in self.settings.concurrency.items()
            if kind in self._caches.own
        }
        made[IDENTITIES] = self._controller(
            IDENTITIES.lower(), identities, self.settings.terraformclusteridentity_concurrency
        )
        templates = TemplateReconciler(self._door, self._caches, self._clock)
        made[TEMPLATES] = self._controller(
            TEMPLATES.lower(), templates, self.settings.terraformmachinetemplate_concurrency
        )
        made[PODS] = self._controller(PODS.lower(), pods, _POD_WORKERS)
        return made

    def _call(self, owner: SlotOwner) -> None:
        """A Job slot is kept for this object: it stands idle until the object's next pass."""
        queue = self._controllers[owner.kind].queue
        queue.add((owner.namespace, owner.name), urgent=True)

    def _controller(self, name: str, reconcile: _Reconcile, workers: int) -> Controller[Key]:
        queue: WorkQueue[Key] = WorkQueue(self._clock, metrics=NamedQueueMetrics(self._work, name))
        counted = self._work.measured(name, reconcile, self._clock)
        return Controller(name, counted, self._clock, workers=workers, queue=queue)

    def _make_servers(self) -> dict[str, HttpServer]:
        servers = {}
        if self.settings.health_addr:
            respond = probes(self._health)
            servers["health"] = HttpServer("health", _address(self.settings.health_addr), respond)
        if self.settings.diagnostics_address:
            servers["diagnostics"] = self._diagnostics(self.settings.diagnostics_address)
        return servers

    def _diagnostics(self, address: str) -> HttpServer:
        if self.settings.insecure_diagnostics:
            return HttpServer("diagnostics", _address(address), endpoints.insecure(self.registry))
        tls = serving_context(self._clock, self.settings.tls_min_version)
        respond = endpoints.secure(self.registry, self._door)
        return HttpServer("diagnostics", _address(address), respond, tls)

    def _make_elector(self) -> LeaderElector:
        settings = self.settings
        return LeaderElector(
            self._door,
            LEASE_NAME,
            settings.lease_namespace,
            settings.identity,
            ElectionSettings(
                lease_duration=settings.leader_elect_lease_duration.total_seconds(),
                renew_deadline=settings.leader_elect_renew_deadline.total_seconds(),
                retry_period=settings.leader_elect_retry_period.total_seconds(),
            ),
            self._clock,
            on_started=self._begin,
            on_lost=self._lost,
        )

    def _begin(self) -> None:
        """Once this process leads: wait for the caches, then reconcile everything once."""
        while not self._caches.synced:
            if self._clock.wait(self._ended, 0.05):
                return
        for kind in self._caches.own:
            connect(self._caches, KINDS[kind], self._controllers[kind].queue)
        connect_identities(self._caches, self._controllers[IDENTITIES].queue)
        connect_templates(self._caches, self._controllers[TEMPLATES].queue)
        connect_slots(self._caches, self._slots)
        connect_pods(self._caches, self._controllers[PODS].queue)
        for controller in self._controllers.values():
            controller.start()
        self._sweeper.start()
        log.info("controllers started")

    def _lost(self) -> None:
        self._failure = LeadershipLost(
            "the leadership was lost",
            why="the Lease could not be renewed in time",
            do="start the manager again; it takes part in the election",
        )
        for controller in self._controllers.values():
            controller.queue.shut_down()
        self._ended.set()


def _address(text: str) -> tuple[str, int]:
    parsed = parse_address(text)
    assert parsed is not None, "validated with the settings"
    return parsed
