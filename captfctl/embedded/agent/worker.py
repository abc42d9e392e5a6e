"""One pod's way from bound to gone, in a thread of its own.

Every step can be repeated: after a crash of the agent the next one walks the same way, and what is
on disk tells which steps are done. Reasons to end a pod are looked at whenever it waits.
"""

import contextlib
import logging
import threading
from collections.abc import Callable

from captfctl.embedded.agent.containers import Container as Process
from captfctl.embedded.agent.containers import ExitWatcher, Phase, end_everything, start_supervisor
from captfctl.embedded.agent.context import Node
from captfctl.embedded.agent.directory import PodDirectory, Record
from captfctl.embedded.agent.lock_attribution import attribute_lock
from captfctl.embedded.agent.preparation import NotYet, Preparation
from captfctl.embedded.agent.reporting import Gone, Reporter
from captfctl.embedded.agent.status import TERMINAL, Facts, Known, PodPhase, termination_message
from captfctl.embedded.agent.stopping import SHUT_DOWN, Stop, StopReasons
from captfctl.embedded.agent.unsaved_state import keep_unsaved_state
from captfctl.embedded.agent.volumes import Unsupported
from captfctl.embedded.images import NODE_REASON
from captfctl.embedded.supervisor.isolation import HostnameBy
from captfctl.embedded.supervisor.processes import Process as Survivor
from captfctl.embedded.supervisor.records import Ended
from captfctl.errors import CaptfError
from captfctl.model.core import Container, Pod

_RETRY = 2.0
_LONGEST_WAIT = 60.0
_START_POLL = 0.02
HOSTNAME_BY = "captf.io/hostname-by"
"""The pod's annotation that says how its name reaches the state lock: a `HostnameBy`."""

MEMORY_BY = "captf.io/memory-limit-by"
"""The pod's annotation that says who holds it to its memory limit: a `MemoryBy`."""


log = logging.getLogger(__name__)


class Stopped(Exception):
    """The agent itself stops: leave everything as it is."""


class PodWorker:
    """`finished` is called at the end, from the worker's thread."""

    def __init__(
        self,
        node: Node,
        watcher: ExitWatcher,
        pod: Pod,
        directory: PodDirectory,
        finished: Callable[["PodWorker"], None],
    ) -> None:
        self.pod = pod
        self._node = node
        self._watcher = watcher
        self._directory = directory
        self._finished = finished
        self._wake = threading.Event()
        self._halted = False
        self._done = False
        self._record = directory.read() or Record(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            uid=pod.metadata.uid,
            started_at=self._now(),
        )
        self._reasons = StopReasons(self._record)
        self._facts = Facts(
            started_at=self._record.started_at,
            reason=self._record.reason,
            message=self._record.message,
            node_ip=node.address,
        )
        self._reporter = Reporter(node, pod, self._facts)
        self._preparation = Preparation(node, pod, directory, self._record)
        self._thread = threading.Thread(
            target=self._run, name=f"pod {pod.metadata.name}", daemon=True
        )

    # Called by the agent, from other threads.

    def start(self) -> None:
        """Start the worker's thread."""
        self._thread.start()

    def update(self, pod: Pod) -> None:
        """The pod object changed."""
        self.pod = pod
        self._reporter.pod = pod
        self._wake.set()

    def vanish(self) -> None:
        """The pod object is gone from the API."""
        self._reasons.vanish(self._now())
        self._wake.set()

    def shut_down(self, grace: float) -> None:
        """End the pod: the machine or the API goes away."""
        self._reasons.shut_down(self._now(), grace)
        self._wake.set()

    def halt(self) -> None:
        """Leave the pod alone from now on; its processes go on."""
        self._halted = True
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the thread; tell whether it ended."""
        self._thread.join(max(timeout, 0.0))
        return not self._thread.is_alive()

    # The thread.

    def _run(self) -> None:
        try:
            while not self._done:
                self._step()
        except Gone:
            with contextlib.suppress(Stopped):
                self._clean_up()
        except Stopped:
            pass
        finally:
            self._finished(self)

    def _step(self) -> None:
        try:
            self._walk()
            self._done = True
        except NotYet as reason:
            self._wait_for(reason)
        except Unsupported as problem:
            self._refuse(problem)
            self._done = True
        except (CaptfError, OSError) as problem:
            log.warning("pod %s: %s", self.pod.metadata.name, problem)
            self._wait_for(NotYet(NODE_REASON, str(problem), retry=_RETRY))
        except (Gone, Stopped):
            raise
        except Exception:
            # A bug must not leave a process unwatched.
            log.exception("pod %s: the worker failed; it goes on", self.pod.metadata.name)
            self._wait(_RETRY)

    def _walk(self) -> None:
        """From wherever the pod is to its end. Raises `NotYet` when something is missing."""
        self._check_supported()
        for container in self._containers:
            absent = self._process(container).phase is Phase.ABSENT
            if absent and (stop := self._stop()) is not None:
                if stop.reason == SHUT_DOWN:
                    raise Stopped  # nothing to end: the next agent starts it
                self._end_unstarted(stop)
                return
            ended = self._container(container)
            if ended.exit_code != 0 or ended.reason:
                break
        self._finish(container, ended)

    def _check_supported(self) -> None:
        spec = self.pod.spec
        if len(spec.containers) != 1:
            raise Unsupported(f"the pod has {len(spec.containers)} containers; this node runs one")
        if spec.restart_policy != "Never":
            raise Unsupported(
                f"restartPolicy is {spec.restart_policy or 'Always'}; this node starts a container "
                "once",
                do="set restartPolicy: Never",
            )

    @property
    def _containers(self) -> list[Container]:
        """In the order in which they run."""
        return [*self.pod.spec.init_containers, *self.pod.spec.containers]

    def _process(self, container: Container) -> Process:
        return Process(self._directory.container(container.name), self.pod.metadata.uid)

    def _container(self, container: Container) -> Ended:
        """Run `container`, or go on with it, until it has ended."""
        process = self._process(container)
        known = self._facts.containers.setdefault(container.name, Known())
        known.image_id = self._record.image_ids.get(container.name, "")
        phase = process.phase
        if phase is Phase.RUNNING:
            self._preparation.refresh_access()  # adopted: the API may have moved meanwhile
        elif phase is Phase.ABSENT and not self._preparation.place(container):
            self._launch(container, process)
            known.image_id = self._record.image_ids.get(container.name, "")
        ended = self._supervise(container, process)
        known.ended = ended
        known.message = termination_message(
            container,
            ended,
            self._directory.termination_log(container.name),
            process.directory,
        )
        return ended

    def _launch(self, container: Container, process: Process) -> None:
        launch = self._preparation.launch(container)
        supervisor = start_supervisor(launch)
        over = threading.Event()

        def ended() -> None:
            over.set()
            self._wake.set()

        self._watcher.watch(supervisor, ended)
        self._reporter.event("Created", f"Created container {container.name}")
        while process.phase is Phase.ABSENT:
            if over.is_set() and process.phase is Phase.ABSENT:
                raise NotYet(NODE_REASON, process.problem(), retry=_RETRY)
            self._wait(_START_POLL)
        while process.running is None and not over.is_set():
            self._wait(_START_POLL)
        self._reporter.event("Started", f"Started container {container.name}")

    def _supervise(self, container: Container, process: Process) -> Ended:
        """Until the container has ended: what has to be told, told; what has to end, ended."""
        self._note_running(container, process)
        supervisor = process.supervisor
        if supervisor is not None:
            self._watcher.watch(supervisor, self._wake.set)
        main = process.main
        if main is not None:
            self._watcher.watch(main, self._wake.set)
        told = False
        begun = killed_at = neglected_at = 0.0
        while True:
            phase = process.phase
            if phase is Phase.ENDED:
                ended = process.ended
                assert ended is not None
                if not told:  # it was quicker than its first report
                    self._reporter.try_annotate(self._ways())
                return ended
            now = self._now()
            if phase is Phase.LOST:
                self._bury(process)
                continue
            told = told or self._tell_running()
            neglected_at = (neglected_at or now) if process.neglected else 0.0
            if neglected_at:
                process.wake_supervisor()
                if now > neglected_at + self._node.settings.kill_wait:
                    self._bury(process)
                    continue
            stop = self._stop()
            if stop is not None and not begun:
                begun = now
                self._begin_stop(stop, container, process)
            if stop is not None and now >= stop.kill_at:
                killed_at = killed_at or now
                process.kill()
                if now > killed_at + self._node.settings.kill_wait:
                    self._bury(process)
                    continue
            longest = _LONGEST_WAIT if told and not neglected_at else _RETRY
            self._wait(min(self._pause(stop, now), longest))

    def _note_running(self, container: Container, process: Process) -> None:
        running = process.running
        known = self._facts.containers[container.name]
        known.running_since = running.at if running else self._now()
        if container in self.pod.spec.containers:
            self._facts.phase = PodPhase.RUNNING

    def _tell_running(self) -> bool:
        """Once, without waiting: what runs has to be watched, also while the API is away."""
        return self._reporter.try_annotate(self._ways()) and self._reporter.try_report()

    def _ways(self) -> dict[str, str]:
        """How the host name and the memory limit come about, for the pod to tell."""
        return {HOSTNAME_BY: self._record.hostname_by, MEMORY_BY: self._record.memory_by}

    def _begin_stop(self, stop: Stop, container: Container, process: Process) -> None:
        process.terminate()  # before anything that may fail or take its time
        if stop.reason and not self._record.reason:
            self._record.reason, self._record.message = stop.reason, stop.message
            self._record.stop_at = stop.kill_at
            try:
                self._directory.write(self._record)
            except OSError as problem:
                log.warning("pod %s: %s", self.pod.metadata.name, problem)
        self._facts.reason, self._facts.message = self._record.reason, self._record.message
        self._reporter.event("Killing", f"Stopping container {container.name}")

    def _bury(self, process: Process) -> None:
        """End what no supervisor watches any more; wait when something cannot be ended."""
        if not process.bury(now=self._now(), timeout=self._node.settings.kill_wait):
            self._say_what_survives(process.remains())
            self._wait(_RETRY)

    def _say_what_survives(self, left: list[Survivor]) -> None:
        """A person has to look at the machine: the agent has nothing stronger than SIGKILL."""
        pids = ", ".join(str(process.pid) for process in left)
        text = f"processes {pids} do not end after SIGKILL"
        log.warning("pod %s/%s: %s", self.pod.metadata.namespace, self.pod.metadata.name, text)
        self._reporter.warn("FailedKillPod", text)

    def _pause(self, stop: Stop | None, now: float) -> float:
        pause = _LONGEST_WAIT
        if stop is not None:
            pause = min(pause, stop.kill_at - now if stop.kill_at > now else _RETRY / 10)
        elif (deadline := self._reasons.deadline(self.pod)) is not None:
            pause = min(pause, deadline - now)
        renew = self._preparation.renew(now)
        if renew is not None:
            pause = min(pause, renew - now)
        return max(pause, 0.0)

    # Ends.

    def _end_unstarted(self, stop: Stop) -> None:
        """Nothing of the main container ever ran, and nothing will."""
        self._facts.reason, self._facts.message = stop.reason, stop.message
        self._facts.phase = PodPhase.FAILED
        for container in self._containers:
            known = self._facts.containers.setdefault(container.name, Known())
            known.waiting = "ContainerCreating" if not known.ended else known.waiting
        self._conclude()

    def _refuse(self, problem: Unsupported) -> None:
        self._facts.phase = PodPhase.FAILED
        self._facts.reason, self._facts.message = problem.code, str(problem)
        self._reporter.warn(problem.code, str(problem))
        self._conclude()

    def _finish(self, container: Container, ended: Ended) -> None:
        """`container` was the last to run."""
        if self._record.hostname_by == HostnameBy.LOCK_ATTRIBUTION:
            attribute_lock(
                self._node.door,
                self.pod,
                container,
                self._node.hostname,
                ended.started_at,
                ended.finished_at,
            )
        good = ended.exit_code == 0 and not ended.reason and not self._record.reason
        self._facts.phase = PodPhase.SUCCEEDED if good else PodPhase.FAILED
        self._conclude()

    def _conclude(self) -> None:
        """Tell the end, and let the object go when it is being deleted."""
        assert self._facts.phase in TERMINAL
        while not keep_unsaved_state(self._node.door, self._directory):
            self._wait(_RETRY)
        self._directory.drop_short_tmp(self._record)
        self._directory.keep_only_outcomes()
        self._reporter.report(self._wait)
        if self.pod.metadata.deletion_timestamp is not None:
            self._reporter.release(self._wait)

    def _clean_up(self) -> None:
        """The object is gone: end what still runs, then remove the pod's directory."""
        while not self._everything_ended():
            containers = (self._process(container) for container in self._containers)
            self._say_what_survives(next((left for c in containers if (left := c.remains())), []))
            self._wait(_RETRY)
        while not keep_unsaved_state(self._node.door, self._directory):
            self._wait(_RETRY)
        self._directory.remove()

    def _everything_ended(self) -> bool:
        home = self._directory.path / "containers"
        wait = self._node.settings.kill_wait
        return end_everything(home, self.pod.metadata.uid, now=self._now(), timeout=wait)

    # Waiting.

    def _stop(self) -> Stop | None:
        return self._reasons.current(self.pod, self._now())

    def _now(self) -> float:
        return self._node.clock.now().timestamp()

    def _wait(self, seconds: float) -> None:
        """Until something changed, or `seconds` have passed. Raises `Stopped`."""
        if self._halted:
            raise Stopped
        self._node.clock.wait(self._wake, seconds)
        self._wake.clear()
        if self._halted:
            raise Stopped

    def _wait_for(self, reason: NotYet) -> None:
        """Say what is missing, and wait before looking again. Raises `Gone`."""
        if self._reasons.gone:
            raise Gone
        for container in self._containers:
            known = self._facts.containers.setdefault(container.name, Known())
            if known.ended is None:
                known.waiting, known.waiting_message = reason.waiting(container)
        if reason.event:
            self._reporter.warn(reason.event, reason.message)
        self._reporter.report(self._wait)
        if self._stop() is None:
            self._wait(reason.retry)
