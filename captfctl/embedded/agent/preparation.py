"""Everything a container needs before it can start: volumes, image, command, environment."""

import contextlib
import logging
from pathlib import Path

from captfctl.backoff import doubled
from captfctl.cluster.errors import ApiError
from captfctl.embedded.agent.access import write_access
from captfctl.embedded.agent.command import arguments, copy_target, is_runner, paths_of
from captfctl.embedded.agent.context import Node
from captfctl.embedded.agent.directory import PodDirectory, Record
from captfctl.embedded.agent.environment import ConfigProblem, environment
from captfctl.embedded.agent.runner_file import place_runner
from captfctl.embedded.agent.tokens import Tokens
from captfctl.embedded.agent.volumes import NotMounted, Unsupported, VolumeSources, write_files
from captfctl.embedded.images import NODE_REASON, Image, PullError
from captfctl.embedded.store.quantity import QuantityError, parse_quantity
from captfctl.embedded.supervisor import records
from captfctl.embedded.supervisor.launch import Launch
from captfctl.embedded.supervisor.memory import MemoryBy
from captfctl.errors import CaptfError
from captfctl.model.core import Container, Pod
from runner import wire

_LONGEST_BACKOFF = 300.0
_HOSTNAME_MAX = 63
_FIRST_LOOK = 0.05
_TMP = "/tmp"  # noqa: S108 - inside the pod

log = logging.getLogger(__name__)


class NotYet(CaptfError):
    """A container cannot start yet. `retry` is in seconds; `event` the event's reason, if any."""

    code = "NotYet"

    def __init__(
        self, reason: str, message: str, *, retry: float, event: str = "Failed", only: str = ""
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry = retry
        self.event = event
        self.only = only

    def waiting(self, container: Container) -> tuple[str, str]:
        """The waiting reason and message of `container`; other containers wait for this one."""
        if self.only and container.name != self.only:
            return "PodInitializing", ""
        return self.reason, "" if self.reason == "ContainerCreating" else self.message


class Preparation:
    """Prepares one pod. Everything may be repeated; nothing is done for what was started."""

    def __init__(self, node: Node, pod: Pod, directory: PodDirectory, record: Record) -> None:
        self._node = node
        self._pod = pod
        self._directory = directory
        self._record = record
        self._tokens = Tokens(node.door, pod, node.access, node.clock)
        self._places: dict[str, Path] = {}
        self._pulls = 0
        self._misses = 0

    def place(self, container: Container) -> bool:
        """Do the work of an init container that only copies the runner; False for any other."""
        target = copy_target([*container.command, *container.args])
        if target is None or container not in self._pod.spec.init_containers:
            return False
        self._mount()
        paths = paths_of(container, self._places, self._directory, None)
        home = self._directory.container(container.name)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        place_runner(Path(paths.here(target)), self._node.settings.runner)
        now = self._node.clock.now().timestamp()
        records.write(
            home / records.EXIT, records.Ended(exit_code=0, started_at=now, finished_at=now)
        )
        return True

    def launch(self, container: Container) -> Launch:
        """What to tell the supervisor of `container`. Raises `NotYet`."""
        self._mount()
        image = self._pull(container)
        self._place_module(image)
        paths = paths_of(container, self._places, self._directory, image)
        hostname = self.hostname
        try:
            variables = environment(
                self._node.door,
                self._pod,
                container,
                self._node.settings.base_env,
                self._node.access,
                str(self._directory.api),
                hostname,
                paths,
            )
        except ConfigProblem as problem:
            raise NotYet(
                problem.code,
                str(problem),
                retry=self._node.settings.mount_retry,
                only=container.name,
            ) from None
        argv = arguments(container, variables, paths, self._directory)
        if not argv:
            raise NotYet(
                NODE_REASON,
                f"container {container.name} has no command, and its image brings none",
                retry=_LONGEST_BACKOFF,
                only=container.name,
            )
        home = self._directory.container(container.name)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        limit = _memory_limit(container)
        self._record.hostname_by = self._node.hostname_by
        self._record.memory_by = self._memory_by(limit)
        self._record.image_ids[container.name] = image.image_id
        if is_runner(container.command):
            self._record.run_arguments = list(container.args)
        self._directory.write(self._record)
        working = container.working_dir or "/"
        cwd = Path(paths.here(working)) if working != "/" else self._directory.root
        return Launch(
            directory=str(home),
            argv=argv,
            env=variables,
            cwd=str(cwd),
            pod_uid=self._pod.metadata.uid,
            hostname=hostname,
            hostname_by=self._node.hostname_by,
            memory_limit=limit,
            memory_by=self._record.memory_by,
            cgroup=str(self._node.cgroup or ""),
            holds_stop=is_runner(container.command),
            log_limit=self._node.settings.log_limit,
        )

    @property
    def hostname(self) -> str:
        """As a kubelet names a pod's host: at most 63 characters, ending in a letter or digit."""
        name = self._pod.spec.hostname or self._pod.metadata.name
        return name[:_HOSTNAME_MAX].rstrip("-.")

    def refresh_access(self) -> None:
        """Write again how to reach the API: the server may have moved since. Best effort."""
        with contextlib.suppress(CaptfError, OSError):
            self._write_access()

    def renew(self, now: float) -> float | None:
        """Renew tokens that need it; when to come again, as a Unix time (None: never)."""
        due = self._tokens.renew_at
        if due is None:
            return None
        if due <= now:
            try:
                self._write_access()
                self._write_volumes(tokens_only=True)
            except (CaptfError, OSError) as problem:
                log.warning("pod %s: token not renewed: %s", self._pod.metadata.name, problem)
                return now + self._node.settings.renew_interval
            due = self._tokens.renew_at
        return due

    # Steps.

    def _mount(self) -> None:
        self._directory.make()
        if self._directory.read() is None:
            self._directory.write(self._record)
        try:
            self._write_access()
            self._write_volumes()
        except (NotMounted, ApiError) as problem:  # an API error: the ServiceAccount's token
            raise self._unmounted(str(problem)) from None
        except OSError as problem:
            # A kubelet would wait as for a missing Secret; what this machine lacks should be told.
            raise NotYet(
                NODE_REASON,
                f"MountVolume.SetUp failed: {problem.strerror}: {problem.filename}",
                retry=self._node.settings.mount_retry,
                event="FailedMount",
            ) from None
        self._misses = 0

    def _unmounted(self, message: str) -> NotYet:
        """The per-run Secret comes a moment after the Job (runs.md: The per-run Secret): look again
        soon at first."""
        delay = doubled(_FIRST_LOOK, self._misses, self._node.settings.mount_retry)
        self._misses += 1
        return NotYet(
            "ContainerCreating",
            f"MountVolume.SetUp failed: {message}",
            retry=delay,
            event="FailedMount" if delay == self._node.settings.mount_retry else "",
        )

    def _write_access(self) -> None:
        own = self._node.access.token_path is None
        token = self._tokens.get() if own else None
        write_access(self._directory.api, self._node.access, self._pod.metadata.namespace, token)

    def _write_volumes(self, *, tokens_only: bool = False) -> None:
        sources = VolumeSources(
            self._node.door, self._pod, self._tokens, self._node.access.ca_path.read_bytes()
        )
        for volume in self._pod.spec.volumes:
            place = self._place_of(volume.name)
            projected = volume.projected
            has_token = projected is not None and any(
                source.service_account_token for source in projected.sources
            )
            if tokens_only and not has_token:
                continue
            files = sources.files(volume)
            if files is None:
                place.mkdir(mode=0o777, parents=True, exist_ok=True)
            else:
                write_files(place, files)
            self._places[volume.name] = place
        self._shorten_tmp()

    def _place_of(self, volume: str) -> Path:
        """Where the main container mounts it, so that relative paths between mounts hold."""
        for container in (*self._pod.spec.containers, *self._pod.spec.init_containers):
            for mount in container.volume_mounts:
                if mount.name == volume and not mount.sub_path:
                    return self._directory.inside(mount.mount_path)
        return self._directory.volume(volume)

    def _shorten_tmp(self) -> None:
        for mount in self._pod.spec.containers[0].volume_mounts:
            if mount.mount_path.rstrip("/") == _TMP and mount.name in self._places:
                self._places[mount.name] = self._directory.short_tmp(
                    self._directory.inside(_TMP), self._record
                )

    def _pull(self, container: Container) -> Image:
        try:
            image = self._node.images.pull(container.image)
        except PullError as problem:
            raise self._not_pulled(container, problem) from None
        self._pulls = 0
        return image

    def _not_pulled(self, container: Container, problem: PullError) -> NotYet:
        """The first failure is the pull's own, later ones are backing off, as a kubelet's."""
        text = str(problem) + (f"; {problem.do}" if problem.do else "")
        first = self._node.settings.image_retry
        delay = doubled(first, self._pulls, _LONGEST_BACKOFF)
        reason, message = problem.reason, text
        if self._pulls and reason == "ErrImagePull":
            reason = "ImagePullBackOff"
            message = f'Back-off pulling image "{container.image}": ErrImagePull: {text}'
        self._pulls += 1
        return NotYet(reason, message, retry=delay, only=container.name)

    def _place_module(self, image: Image) -> None:
        target = self._directory.inside(wire.MODULE)
        if not target.exists():
            image.share_module(target)

    def _memory_by(self, limit: int) -> MemoryBy:
        if not limit:
            return MemoryBy.NONE
        return MemoryBy.CGROUP if self._node.cgroup else MemoryBy.WATCHDOG


def _memory_limit(container: Container) -> int:
    """In bytes; 0 for none."""
    limits = container.resources.limits if container.resources else {}
    if "memory" not in limits:
        return 0
    try:
        return int(parse_quantity(str(limits["memory"])))
    except QuantityError as problem:
        raise Unsupported(f"memory limit of container {container.name}: {problem}") from None
