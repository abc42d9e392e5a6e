"""An image or a runtime that is not there ends a command soon, and says what to do."""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from captfctl.cli import progress
from captfctl.cli.local_session import make_plane
from captfctl.cli.modules import image_table
from captfctl.clock import SystemClock
from captfctl.model.events import EventReason
from captfctl.model.resources import EVENTS
from tests.cli.conftest import QUICKSTART
from tests.embedded.support import until

IMAGE = "registry.example.com/quickstart/cluster:v1"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module of its own for each test, with a table that has it."""
    shutil.copytree(QUICKSTART / "module", tmp_path / "module")
    runtime = tmp_path / "runtime"
    runtime.write_text("#!/bin/sh\nexit 0\n")
    runtime.chmod(0o755)
    row(tmp_path)
    return tmp_path / "module"


def row(folder: Path, runtime: str = "./runtime") -> None:
    runtime_line = f"  runtime: {runtime}\n" if runtime else ""
    (folder / "images.yaml").write_text(f"{IMAGE}:\n  module: module\n{runtime_line}")


def reconcile(captfctl, quickstart, *more: str):
    options = ("--local", "--data", "data", "--images", "images.yaml", *more)
    return captfctl("reconcile", "-f", quickstart(), *options)


def refused(ended, code: int, *parts: str) -> None:
    assert ended.code == code, ended.err
    assert all(part in ended.err for part in parts), ended.err
    assert ended.err.count("Error: ") == 1
    assert not Path("data").exists()


def no_runtime_on_path(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row(module.parent, runtime="")
    monkeypatch.setenv("PATH", str(module))


def no_such_runtime(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row(module.parent, runtime="no-such")


def runtime_not_executable(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (module.parent / "runtime").chmod(0o644)


def folder_not_readable(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = Path.iterdir

    def refusing(path: Path) -> Iterator[Path]:
        if path == module:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return really(path)

    monkeypatch.setattr(Path, "iterdir", refusing)


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (no_runtime_on_path, ("terraform or tofu is not an executable on PATH", "install it")),
        (no_such_runtime, ("no-such is not an executable on PATH", "runtime:")),
        (runtime_not_executable, ("/runtime is not an executable file", "install it")),
        (folder_not_readable, ("Permission denied", "module", "make it readable")),
    ],
)
def test_what_this_machine_lacks_is_told_before_anything_starts(
    captfctl, quickstart, module: Path, monkeypatch, spoil: Callable, parts: tuple[str, ...]
):
    spoil(module, monkeypatch)
    refused(reconcile(captfctl, quickstart), 3, IMAGE, *parts)


def dangling(module: Path) -> None:
    (module / "more.tf").symlink_to("nowhere.tf")


def gone(module: Path) -> None:
    shutil.rmtree(module)


def pipe(module: Path) -> None:
    os.mkfifo(module / "pipe.tf")


def no_module_files(module: Path) -> None:
    for file in module.glob("*.tf"):
        file.unlink()


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (dangling, ("more.tf is a link to nowhere.tf", "take the link out")),
        (gone, ("module is not a directory", "correct the image table")),
        (pipe, ("pipe.tf is neither a file nor a directory",)),
        (no_module_files, ("has no file ending in .tf",)),
    ],
)
def test_a_module_that_is_no_image_is_bad_input_with_file_and_line(
    captfctl, quickstart, module: Path, tmp_path: Path, spoil: Callable, parts: tuple[str, ...]
):
    spoil(module)
    lines = (QUICKSTART / "cluster.yaml").read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if f"image: {IMAGE}" in text)
    where = f"{tmp_path / 'cluster.yaml'}:{line}"
    refused(reconcile(captfctl, quickstart), 2, where, "spec.source.image", *parts)


@contextmanager
def control_plane(tmp_path: Path) -> Iterator:
    """One that runs already: it looks for runtimes in its own surroundings."""
    plane = make_plane(tmp_path / "data", image_table(tmp_path / "images.yaml"), SystemClock())
    plane.start()
    try:
        yield plane.door
    finally:
        plane.stop()


def spoiled_later(spoil: Callable[[Path], None]) -> Callable[[Path, pytest.MonkeyPatch], None]:
    """It is spoiled after the command looked at it."""

    def do(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("captfctl.cli.reconcile_local._check_images", lambda *_, **__: None)
        spoil(module)

    return do


@pytest.mark.parametrize(
    ("spoil", "code", "told"),
    [
        (no_such_runtime, 3, "cannot run here"),
        (spoiled_later(dangling), 5, "waits"),
        (spoiled_later(gone), 5, "waits"),
    ],
)
def test_what_a_running_control_plane_cannot_do_ends_the_wait_and_no_deletion_waits_for_it(
    captfctl, quickstart, module: Path, tmp_path: Path, monkeypatch, spoil, code: int, told: str
):
    spoil(module, monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.5)
    with control_plane(tmp_path):
        ended = reconcile(captfctl, quickstart, "--timeout", "60s")
        assert ended.code == code, ended.out + ended.err
        said = rf"{told}: Job \S+ cannot start: image {IMAGE}: "
        assert re.search(said, ended.out), ended.out
        options = ("--local", "--data", "data", "--images", "images.yaml", "--timeout", "60s")
        deleted = captfctl("delete", "-f", quickstart(), "--yes", *options)
        assert deleted.code == 0, deleted.out + deleted.err
        assert "UnstartedJobReplaced" in deleted.out  # a Job that had not begun blocks nothing


def test_the_object_says_within_seconds_what_its_node_lacks(
    captfctl, quickstart, module: Path, tmp_path: Path, monkeypatch
):
    no_such_runtime(module, monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.2)
    with control_plane(tmp_path) as door:
        assert reconcile(captfctl, quickstart).code == 3

        def told() -> list[str]:
            events = door.list(EVENTS).items
            return [e.note for e in events if e.reason == EventReason.JOB_CANNOT_START]

        (note,) = until(told)
        assert "no-such is not an executable on PATH; install it" in note
