"""Where a pod's files are, and the durable record of what was decided about it.

pods/<uid>/
  record.json          what must outlive the agent (0600)
  root/                the containers' file system as far as it exists: a mount at /captf/work
                       is root/captf/work
  volumes/<name>/      volumes that the main container does not mount
  api/                 kubeconfig (0600), token, ca.crt, namespace
  containers/<name>/   see captfctl.embedded.supervisor.records; termination-log

Of a pod that has ended only `record.json` and `containers` are left
(local-mode.md: What a pod leaves).
"""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from captfctl.embedded.files import write_private

_RECORD = "record.json"
_LONGEST_TMP = 64
"""Plug-ins put Unix sockets below TMPDIR, whose whole path must fit 108 bytes."""


class Record(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Times are Unix times. `image_ids` are by container; `run_arguments` what the runner was told.
    `reason` and `message` end up in the pod's status: what the agent itself decided to end the pod
    for.
    """

    namespace: str
    name: str
    uid: str
    started_at: float
    image_ids: dict[str, str] = {}
    run_arguments: list[str] = []
    hostname_by: str = ""
    memory_by: str = ""
    reason: str = ""
    message: str = ""
    stop_at: float = 0.0
    tmp_link: str = ""


class PodDirectory:
    """The directory of one pod."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = path / "root"
        self.api = path / "api"

    @property
    def kubeconfig(self) -> Path:
        """What the runtime's backend reaches the API with."""
        return self.api / "kubeconfig"

    def inside(self, container_path: str) -> Path:
        """Where `container_path`, absolute in a container, is on this machine."""
        return self.root / os.path.normpath(container_path).lstrip("/")

    def volume(self, name: str) -> Path:
        """Where a volume is that the main container does not mount."""
        return self.path / "volumes" / name

    def container(self, name: str) -> Path:
        """Where a container's supervisor keeps its files."""
        return self.path / "containers" / name

    def termination_log(self, name: str) -> Path:
        """Where a container leaves its termination message."""
        return self.container(name) / "termination-log"

    def make(self) -> None:
        """Raises `OSError`."""
        for path in (self.path, self.root, self.api):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def read(self) -> Record | None:
        """None when there is none, or not a whole one: then nothing was started."""
        try:
            return msgspec.json.decode((self.path / _RECORD).read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, record: Record) -> None:
        """Durably. Raises `OSError`."""
        write_private(self.path / _RECORD, msgspec.json.encode(record))

    def short_tmp(self, target: Path, record: Record) -> Path:
        """A path to `target` short enough for sockets in it; a link in the machine's own temporary
        directory when `target` is too long. The link is noted in `record`.
        """
        if len(os.fsencode(target)) <= _LONGEST_TMP:
            return target
        link = Path(record.tmp_link or _free_link(record.uid))
        if not link.is_symlink():
            link.symlink_to(target)
        record.tmp_link = str(link)
        return link

    def drop_short_tmp(self, record: Record) -> None:
        """No process needs the short path any more."""
        if record.tmp_link and Path(record.tmp_link).is_symlink():
            with contextlib.suppress(OSError):
                Path(record.tmp_link).unlink()

    def keep_only_outcomes(self) -> None:
        """The pod has ended: what stays is its record, and of each container the log, the result
        and how it ended. Credentials, inputs, plans and the module go."""
        kept = {self.path / _RECORD, self.path / "containers"}
        if not self.path.is_dir():
            return
        for path in self.path.iterdir():
            if path in kept:
                continue
            if path.is_symlink() or not path.is_dir():
                path.unlink(missing_ok=True)
                continue
            _make_removable(path)
            shutil.rmtree(path, ignore_errors=True)

    def remove(self) -> None:
        """Remove everything; what a module made unwritable is made writable first."""
        record = self.read()
        if record is not None:
            self.drop_short_tmp(record)
        _make_removable(self.path)
        shutil.rmtree(self.path, ignore_errors=True)


def _free_link(uid: str) -> Path:
    return Path(tempfile.gettempdir()) / f"captf-{uid[:13]}"


def _make_removable(path: Path) -> None:
    for here, _, _ in os.walk(path):
        mode = Path(here).stat().st_mode
        if stat.S_IMODE(mode) & 0o700 != 0o700:
            Path(here).chmod(0o700)


class PodDirectories:
    """All pods' directories below `base`."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def of(self, uid: str) -> PodDirectory:
        """The directory of the pod with this UID, whether it exists or not."""
        return PodDirectory(self._base / uid)

    def all(self) -> Iterator[PodDirectory]:
        """The directories that exist."""
        if self._base.is_dir():
            for path in sorted(self._base.iterdir()):
                if path.is_dir():
                    yield PodDirectory(path)
