"""A pod's volumes as directories.

Secrets, ConfigMaps and projections are written as a kubelet writes them: files in a directory of
their own, `..data` linked to it in one step, and a link per file through `..data`. Left out: size
limits of emptyDirs, read-only mounts, ownership by `fsGroup`, updates while the pod runs (but for
ServiceAccount tokens), and every other kind of volume.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.embedded.agent.access import ROOT_CA
from captfctl.embedded.agent.tokens import Tokens
from captfctl.errors import CaptfError
from captfctl.model.core import KeyToPath, Pod, Volume, VolumeProjection
from captfctl.model.resources import CONFIG_MAPS, SECRETS

_DEFAULT_MODE = 0o644


class NotMounted(CaptfError):
    """A volume's content is not there yet; a kubelet waits for it, and so do we."""

    code = "NotMounted"


class Unsupported(CaptfError):
    """The pod asks for something this node cannot provide."""

    code = "UnsupportedPod"


@dataclass(frozen=True)
class File:
    """One file of a volume."""

    content: bytes
    mode: int


Files = dict[str, File]
"""By path below the volume."""


class VolumeSources:
    """What the volumes of one pod are filled from."""

    def __init__(self, door: Door, pod: Pod, tokens: Tokens, ca: bytes) -> None:
        self._door = door
        self._pod = pod
        self._tokens = tokens
        self._ca = ca

    def files(self, volume: Volume) -> Files | None:
        """The volume's files; None for an emptyDir. Raises `NotMounted`, `Unsupported`, and what
        the door raises.
        """
        if volume.empty_dir is not None:
            return None
        if (secret := volume.secret) is not None:
            data = self._secret(secret.secret_name, secret.optional)
            return _select(data, secret.items, secret.default_mode, secret.secret_name)
        if (config := volume.config_map) is not None:
            data = self._config_map(config.name, config.optional)
            return _select(data, config.items, config.default_mode, config.name)
        if (projected := volume.projected) is not None:
            files: Files = {}
            for source in projected.sources:
                files |= self._projection(source, projected.default_mode)
            return files
        raise Unsupported(
            f"volume {volume.name} has a source that this node cannot provide",
            do="use emptyDir, secret, configMap or projected",
        )

    def _projection(self, source: VolumeProjection, mode: int | None) -> Files:
        if (secret := source.secret) is not None:
            return _select(
                self._secret(secret.name, secret.optional), secret.items, mode, secret.name
            )
        if (config := source.config_map) is not None:
            return _select(
                self._config_map(config.name, config.optional), config.items, mode, config.name
            )
        if (token := source.service_account_token) is not None:
            text = self._tokens.get(token.audience, token.expiration_seconds)
            return {token.path: File(text.encode(), mode or _DEFAULT_MODE)}
        if (downward := source.downward_api) is not None:
            return {
                item.path: File(
                    field(self._pod, item.field_ref.get("fieldPath", "")).encode(),
                    mode or _DEFAULT_MODE,
                )
                for item in downward.items
            }
        raise Unsupported("a projected volume has a source that this node cannot provide")

    def _secret(self, name: str, optional: bool) -> Mapping[str, bytes]:
        try:
            return self._door.get(SECRETS, name, self._pod.metadata.namespace).data
        except NotFound:
            if optional:
                return {}
            raise NotMounted(f'secret "{name}" not found') from None

    def _config_map(self, name: str, optional: bool) -> Mapping[str, bytes]:
        try:
            found = self._door.get(CONFIG_MAPS, name, self._pod.metadata.namespace)
        except NotFound:
            if name == ROOT_CA:  # not every control plane publishes it
                return {"ca.crt": self._ca}
            if optional:
                return {}
            raise NotMounted(f'configmap "{name}" not found') from None
        return {key: text.encode() for key, text in found.data.items()} | found.binary_data


def _select(
    data: Mapping[str, bytes], items: Iterable[KeyToPath], default_mode: int | None, name: str
) -> Files:
    mode = _DEFAULT_MODE if default_mode is None else default_mode
    chosen = list(items)
    if not chosen:
        return {key: File(content, mode) for key, content in data.items()}
    missing = [item.key for item in chosen if item.key not in data]
    if missing and data:
        raise NotMounted(f'"{name}" has no key {missing[0]}')
    return {
        item.path: File(data[item.key], mode if item.mode is None else item.mode)
        for item in chosen
        if item.key in data
    }


def field(pod: Pod, path: str) -> str:
    """The value of a downward API field path. Raises `Unsupported`."""
    metadata = pod.metadata
    for prefix, entries in (
        ("metadata.labels['", metadata.labels),
        ("metadata.annotations['", metadata.annotations),
    ):
        if path.startswith(prefix) and path.endswith("']"):
            return entries.get(path[len(prefix) : -2], "")
    known = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "metadata.labels": _lines(metadata.labels),
        "metadata.annotations": _lines(metadata.annotations),
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": pod.status.host_ip,
        "status.podIP": pod.status.pod_ip,
    }
    if path not in known:
        raise Unsupported(f"field {path} cannot be handed to the pod")
    return known[path]


def _lines(entries: Mapping[str, str]) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted(entries.items()))


def write_files(directory: Path, files: Files) -> None:
    """Make `directory` hold exactly `files`; readers see the old ones or the new ones, never both.

    Raises `OSError`, and `Unsupported` for a path that leaves the volume.
    """
    for name in files:
        parts = Path(name).parts
        if not parts or Path(name).is_absolute() or ".." in parts or parts[0].startswith(".."):
            raise Unsupported(f"path {name!r} is not allowed in a volume")
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    data = directory / "..data"
    old = data.readlink().name if data.is_symlink() else ""
    new = f"..{int(old.removeprefix('..')) + 1 if old else 1}"
    shutil.rmtree(directory / new, ignore_errors=True)
    for name, file in files.items():
        target = directory / new / name
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(file.content)
            os.fchmod(out.fileno(), file.mode)
    (directory / new).mkdir(exist_ok=True)
    beside = directory / "..data_new"
    beside.unlink(missing_ok=True)
    beside.symlink_to(new)
    beside.replace(data)
    _link(directory, {Path(name).parts[0] for name in files})
    if old:
        shutil.rmtree(directory / old, ignore_errors=True)


def _link(directory: Path, names: set[str]) -> None:
    for name in names:
        with contextlib.suppress(FileExistsError):
            (directory / name).symlink_to(Path("..data") / name)
    for path in directory.iterdir():
        if not path.name.startswith("..") and path.name not in names:
            path.unlink()
