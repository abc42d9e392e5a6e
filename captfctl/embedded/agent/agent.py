"""The agent itself: a Node, its Lease, and one worker for every pod bound to it."""

import fcntl
import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import ApiError, NotFound
from captfctl.controller import Controller, Handler, Informer, Result
from captfctl.embedded.agent.abilities import cgroup_parent, hostname_way
from captfctl.embedded.agent.access import ApiAccess
from captfctl.embedded.agent.containers import Container, ExitWatcher, end_everything
from captfctl.embedded.agent.context import Node
from captfctl.embedded.agent.directory import PodDirectories
from captfctl.embedded.agent.logs import LogOptions, LogReader
from captfctl.embedded.agent.node import Registration
from captfctl.embedded.agent.settings import AgentSettings
from captfctl.embedded.agent.status import TERMINAL
from captfctl.embedded.agent.unsaved_state import keep_unsaved_state
from captfctl.embedded.agent.worker import PodWorker
from captfctl.embedded.events import Events
from captfctl.embedded.images import ImageStore, ImageTable
from captfctl.errors import EnvironmentFault
from captfctl.model.core import Pod
from captfctl.model.resources import PODS

if TYPE_CHECKING:
    from captfctl.serving.http import HttpServer

COMPONENT = "captfctl-node-agent"
_SYNC_SECONDS = 60.0
_TIDY_RETRY = 2.0

log = logging.getLogger(__name__)


class NodeAgent:
    """Runs the pods of one node as process groups of this machine (local-mode.md: The node agent).

    `data_dir` belongs to one agent at a time. `api` may be set later, but before `start`: an
    embedded API server wants the agent as its source of logs before it has an address.

    Left out of what a kubelet does: pods' networks and probes, more than one main container,
    restarts, requests and eviction, limits other than memory, read-only mounts, users and groups.
    """

    def __init__(
        self,
        door: Door,
        node_name: str,
        images: ImageTable,
        data_dir: Path,
        api: ApiAccess | None,
        clock: Clock,
        settings: AgentSettings | None = None,
    ) -> None:
        self.api = api
        self._door = door
        self._name = node_name
        self._images = images
        self._data_dir = data_dir
        self._clock = clock
        self._settings = settings or AgentSettings()
        self._directories = PodDirectories(data_dir / "pods")
        self._registration = Registration(door, node_name, "127.0.0.1", clock, self._settings)
        self._pods = Informer(door, PODS, clock, fields=f"spec.nodeName={node_name}")
        self._tidier: Controller[str] = Controller("pod-directories", self._tidy, clock)
        self._watcher = ExitWatcher()
        self._lock = threading.Lock()
        self._workers: dict[str, PodWorker] = {}
        self._ending = False
        self._handle = -1
        self._node: Node | None = None
        self._port: HttpServer | None = None

    def start(self) -> None:
        """Take the data directory, register the node, adopt what still runs.

        Raises `EnvironmentFault` when another agent has the directory or it cannot be written, and
        what the door raises when the node cannot be registered.
        """
        assert self.api is not None, "set `api` before `start`"
        self._take_directory()
        self._watcher.start()
        try:
            self._node = self._describe(self.api)
            self._registration.start(self._serve_logs())
        except BaseException:
            self._give_back()
            raise
        self._pods.add_handler(
            Handler(on_add=self._seen, on_update=self._changed, on_delete=self._deleted)
        )
        self._tidier.start()
        self._pods.start()
        threading.Thread(target=self._sweep, name="pod-sweep", daemon=True).start()

    def stop(self, timeout: float = 10.0) -> bool:
        """Leave the pods running, as a kubelet does; a later start adopts them."""
        limit = self._clock.monotonic() + timeout
        self._ending = True
        stopped = [self._pods.stop(timeout), self._tidier.stop(timeout)]
        with self._lock:
            workers = list(self._workers.values())
        for worker in workers:
            worker.halt()
        stopped += [worker.join(limit - self._clock.monotonic()) for worker in workers]
        stopped.append(self._registration.stop(max(limit - self._clock.monotonic(), 0.0)))
        self._give_back()
        return all(stopped)

    def _give_back(self) -> None:
        if self._port is not None:
            self._port.stop()
        self._watcher.stop()
        self._release_directory()

    def shut_down(self, grace: float) -> bool:
        """End all pods because the machine or its API goes away, and write their status.

        SIGTERM now; SIGKILL after `grace` seconds, or a pod's own grace period when that is
        shorter. Tells whether all have ended. Call `stop` afterwards.
        """
        self._registration.mark_not_ready("the node agent shuts down")
        with self._lock:
            self._ending = True
            workers = list(self._workers.values())
        for worker in workers:
            worker.shut_down(grace)
        limit = self._clock.monotonic() + grace + 2 * self._settings.kill_wait
        ended = [worker.join(limit - self._clock.monotonic()) for worker in workers]
        return all(ended)

    def open(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        follow: bool = False,
        tail_lines: int | None = None,
        since_seconds: int | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
        previous: bool = False,
    ) -> LogReader:
        """A container's log (`captfctl.embedded.apiserver.LogSource`). Raises `NotFound`.

        The pod is read from the server: who asks may know of it before the agent's cache does.
        """
        found = self._door.get(PODS, pod, namespace)
        if found.spec.node_name != self._name or previous:
            raise NotFound(f"pod {namespace}/{pod} has no such log on node {self._name}")
        home = self._directories.of(found.metadata.uid).container(container)
        options = LogOptions(follow, tail_lines, since_seconds, timestamps, limit_bytes)
        return LogReader(Container(home, found.metadata.uid), options, self._clock)

    def _serve_logs(self) -> int:
        """The port where logs are served; 0 when they are not."""
        port = self._settings.kubelet_port
        if port is None:
            return 0
        from captfctl.embedded.agent.kubelet_port import kubelet_port  # needs a TLS library

        self._port = kubelet_port(port, self.open, self._data_dir / "pki", self._clock.now())
        self._port.start()
        return self._port.port

    # The data directory.

    def _take_directory(self) -> None:
        where = str(self._data_dir)
        try:
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._handle = os.open(
                self._data_dir / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._release_directory()
            raise EnvironmentFault(
                "another node agent uses this data directory",
                where=where,
                do="stop it, or choose another directory",
            ) from None
        except OSError as problem:
            self._release_directory()
            raise EnvironmentFault(
                f"the node agent's data directory cannot be used: {problem.strerror}", where=where
            ) from None

    def _release_directory(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _describe(self, api: ApiAccess) -> Node:
        search_path = self._settings.base_env.get("PATH", os.defpath)
        return Node(
            door=self._door,
            name=self._name,
            images=ImageStore(self._images, self._data_dir / "images", search_path),
            access=api,
            clock=self._clock,
            settings=self._settings,
            events=Events(self._door, self._clock, COMPONENT, self._name),
            hostname=os.uname().nodename,
            address="127.0.0.1",
            hostname_by=hostname_way(),
            cgroup=cgroup_parent(),
        )

    # Pods come, change and go. Called from the informer's thread.

    def _seen(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        with self._lock:
            worker = self._workers.get(uid)
            if worker is None and not self._ending and pod.status.phase not in TERMINAL:
                assert self._node is not None
                worker = PodWorker(
                    self._node,
                    self._watcher,
                    PODS.copy(pod),
                    self._directories.of(uid),
                    self._finished,
                )
                self._workers[uid] = worker
                worker.start()
            elif worker is not None:
                worker.update(PODS.copy(pod))
        if worker is None and pod.deleting and pod.metadata.deletion_grace_period_seconds:
            self._release(pod)

    def _changed(self, old: Pod, new: Pod) -> None:
        if old.metadata.uid != new.metadata.uid:
            self._deleted(old)
        self._seen(new)

    def _deleted(self, pod: Pod) -> None:
        with self._lock:
            worker = self._workers.get(pod.metadata.uid)
        if worker is not None:
            worker.vanish()
        self._tidier.queue.add(pod.metadata.uid)

    def _finished(self, worker: PodWorker) -> None:
        """From the worker's own thread."""
        uid = worker.pod.metadata.uid
        with self._lock:
            self._workers.pop(uid, None)
        self._tidier.queue.add(uid)

    def _release(self, pod: Pod) -> None:
        """A pod that had ended before it was deleted: nothing is left to end."""
        metadata = pod.metadata
        try:
            self._door.delete(
                PODS, metadata.name, metadata.namespace, uid=metadata.uid, grace_period_seconds=0
            )
        except ApiError as problem:
            log.info("pod %s: not released: %s", metadata.name, problem)

    def _sweep(self) -> None:
        """After the start: directories of pods that have gone meanwhile."""
        if not self._pods.wait_synced(_SYNC_SECONDS):
            log.warning("the pods of node %s could not be listed yet", self._name)
            return
        for directory in self._directories.all():
            self._tidier.queue.add(directory.path.name)

    def _tidy(self, uid: str) -> Result:
        """Of a pod that is gone, or was ended by somebody else while no agent ran: end whatever is
        left of it, make its state safe, and remove what is not needed any more."""
        with self._lock:
            busy = uid in self._workers
        pod = next((pod for pod in self._pods.list() if pod.metadata.uid == uid), None)
        if busy or self._ending or (pod is not None and pod.status.phase not in TERMINAL):
            return Result()
        directory = self._directories.of(uid)
        now = self._clock.now().timestamp()
        home = directory.path / "containers"
        if not end_everything(home, uid, now=now, timeout=self._settings.kill_wait):
            log.warning("processes of pod %s do not end after SIGKILL", uid)
            return Result(requeue_after=_TIDY_RETRY)
        if not keep_unsaved_state(self._door, directory):
            return Result(requeue_after=_TIDY_RETRY)
        if pod is None:
            directory.remove()
        else:
            directory.keep_only_outcomes()
        return Result()
