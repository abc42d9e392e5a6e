"""The work directory: the root module, temporary files, the provider mirror's setting
(runner.md: The work directory)."""

import json
import os
import stat
from contextlib import suppress
from typing import NamedTuple

from runner import wire
from runner.environ import OWN_TMP


class PrepareError(Exception):
    """The work directory could not be prepared; the text says which path and why."""


class Workdir(NamedTuple):
    """The paths of one run.

    `cli_config` is "" when there is no provider mirror.
    """

    path: str
    root: str
    cli_config: str

    @property
    def review_plan(self) -> str:
        """The saved plan of the operations plan and drift."""
        return f"{self.path}/plan.tfplan"

    @property
    def apply_plan(self) -> str:
        """The saved plan of a planned apply."""
        return f"{self.path}/apply.tfplan"

    @property
    def restore_state(self) -> str:
        """The state a restore pushes."""
        return f"{self.path}/restore.tfstate"

    @property
    def unsaved_state(self) -> str:
        """The state that an earlier run could not store."""
        return f"{self.path}/unsaved.tfstate"

    def make_room(self) -> None:
        """Remove what no step needs any more, after the last one: on a full disk the result goes
        first."""
        useless = [self.review_plan, self.apply_plan, self.restore_state, self.unsaved_state]
        for directory, _, names in os.walk(f"{self.path}/.terraform/providers"):
            useless += (f"{directory}/{name}" for name in names)
        for file in useless:
            with suppress(OSError):
                os.unlink(file)

    @property
    def errored_state(self) -> str:
        """Where the runtime leaves a state it could not store
        (runner.md: A state that could not be stored)."""
        return f"{self.path}/{wire.ERRORED_STATE}"


def prepare(workdir: str, config: str, providers: str, *, own_tmp: bool) -> Workdir:
    """Make the work directory ready for the first step. Safe to repeat.

    `own_tmp` asks for a directory for temporary files, when the environment names none. Raises
    PrepareError.
    """
    root = os.path.join(workdir, "root")
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
        if own_tmp:
            os.makedirs(os.path.join(workdir, OWN_TMP), mode=0o700, exist_ok=True)
    except OSError as error:
        raise PrepareError(f"cannot create {error.filename}: {error.strerror}") from None
    _copy_config(config, root)
    cli_config = ""
    if os.path.isdir(providers):
        cli_config = os.path.join(workdir, "cli.tfrc")
        write_private(cli_config, _mirror_setting(providers).encode("utf-8", "surrogateescape"))
    return Workdir(workdir, root, cli_config)


def write_private(path: str, data: bytes) -> None:
    """Write a file only its owner can read. Raises PrepareError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(data)
    except OSError as error:
        raise PrepareError(f"cannot write {path}: {error.strerror}") from None


def _copy_config(config: str, root: str) -> None:
    """Copy the top-level files of the mounted per-run Secret.

    Names starting with a dot are how the kubelet swaps a mounted Secret; directories hold what the
    runner reads by itself.
    """
    try:
        names = sorted(os.listdir(config))
    except OSError as error:
        raise PrepareError(f"cannot list {config}: {error.strerror}") from None
    for name in names:
        source = os.path.join(config, name)
        if name.startswith(".") or not _is_regular(source):
            continue
        try:
            with open(source, "rb") as file:
                data = file.read()
        except OSError as error:
            raise PrepareError(f"cannot read {source}: {error.strerror}") from None
        write_private(os.path.join(root, name), data)


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _mirror_setting(providers: str) -> str:
    """CLI configuration that takes every provider from the mirror and none from a registry.

    Three segments in the pattern: two would match only the default registry host.
    """
    path = json.dumps(providers, ensure_ascii=False)
    return (
        "provider_installation {\n"
        "  filesystem_mirror {\n"
        f"    path    = {path}\n"
        '    include = ["*/*/*"]\n'
        "  }\n"
        "  direct {\n"
        '    exclude = ["*/*/*"]\n'
        "  }\n"
        "}\n"
    )
