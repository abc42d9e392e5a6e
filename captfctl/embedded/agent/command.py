"""A container's command, arguments and environment, with its paths made this machine's.

A container sees `/captf/work`; here that is a directory of the pod. Every argument, every value of
a `--flag=value` and every environment value that is such a path or lies below one is rewritten;
texts that merely contain one are not.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from captfctl.embedded.agent.directory import PodDirectory
from captfctl.embedded.images import Image
from captfctl.model.core import Container
from runner import wire

_IN_CLUSTER = "--backend-config=in_cluster_config=true"
_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")


@dataclass(frozen=True)
class Paths:
    """Which path of a container is which path here; the longest match counts."""

    table: Mapping[str, Path]

    def here(self, value: str) -> str:
        """`value` rewritten when it is a path of the container, else unchanged."""
        if not value.startswith("/"):
            return value
        probe = value.rstrip("/") or "/"
        for known in sorted(self.table, key=len, reverse=True):
            if probe == known or probe.startswith(known + "/"):
                return str(self.table[known]) + value[len(known) :]
        return value

    def argument(self, text: str) -> str:
        """An argument, or the value of a `--flag=value`, rewritten where it is such a path."""
        flag, equals, value = text.partition("=")
        if equals and flag.startswith("-"):
            return f"{flag}={self.here(value)}"
        return self.here(text)


def paths_of(
    container: Container, places: Mapping[str, Path], directory: PodDirectory, image: Image | None
) -> Paths:
    """`places` are the volumes' directories by name."""
    table: dict[str, Path] = {}
    if image is not None:
        table[wire.MODULE] = directory.inside(wire.MODULE)
        table[wire.PROVIDERS] = image.providers or directory.inside(wire.PROVIDERS)
        table[wire.RUNTIME] = image.runtime
    for mount in container.volume_mounts:
        if mount.name in places:
            place = places[mount.name]
            mounted = place / mount.sub_path if mount.sub_path else place
            table[mount.mount_path.rstrip("/")] = mounted
    return Paths(table)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` as a kubelet does: unknown names stay, `$$` is a plain `$`."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(value, text)


def is_runner(argv: Sequence[str]) -> bool:
    """Whether the command is the runner, about to run an operation."""
    return len(argv) >= 2 and argv[0] == wire.RUNNER_FILE and argv[1] == "run"


def copy_target(argv: Sequence[str]) -> str | None:
    """Where an init container that copies the runner wants it (runner.md: Copying itself); None for
    any other."""
    if len(argv) == 3 and Path(argv[0]).name == "runner" and argv[1] == "copy":
        return argv[2]
    return None


def arguments(
    container: Container, variables: Mapping[str, str], paths: Paths, directory: PodDirectory
) -> list[str]:
    """What to execute on this machine."""
    told = [expand(text, variables) for text in (*container.command, *container.args)]
    argv = [paths.argument(text) for text in told]
    if is_runner(told):
        argv = _runner(argv, paths, directory, container.name)
    return argv


def _runner(argv: Sequence[str], paths: Paths, directory: PodDirectory, name: str) -> list[str]:
    """The mounts become the runner's own flags; the backend gets a kubeconfig instead of the
    in-cluster files, which are the same place for all processes of a machine.
    """
    backend = f"--backend-config=config_path={directory.kubeconfig}"
    changed = [backend if text == _IN_CLUSTER else text for text in argv]
    given = {text.partition("=")[0] for text in changed}
    changed += [
        f"--{flag}={paths.here(path)}"
        for flag, path in wire.PATH_FLAGS.items()
        if f"--{flag}" not in given
    ]
    if "--result" not in given:
        changed.append(f"--result={directory.termination_log(name)}")
    return changed
