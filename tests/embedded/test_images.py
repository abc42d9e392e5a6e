"""The image table and the images kept by digest (local-mode.md: Images)."""

import errno
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from captfctl.embedded.images import Entry, ImageStore, ImageTable, PullError, repository
from captfctl.errors import InputError

REFERENCE = "registry.example.com:5000/acme/cluster:v1"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    module = tmp_path / "module"
    (module / "child").mkdir(parents=True)
    (module / "main.tf").write_text("# one\n")
    (module / "child" / "main.tf").write_text("# child\n")
    (module / ".terraform").mkdir()
    (module / ".terraform" / "junk").write_text("junk")
    return module


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    runtime = tmp_path / "bin" / "terraform"
    runtime.parent.mkdir()
    runtime.write_text("#!/bin/sh\n")
    runtime.chmod(0o755)
    return runtime


def store(tmp_path: Path, module: Path, **more: object) -> ImageStore:
    entry = Entry(module=module, **more)  # type: ignore[arg-type]
    return ImageStore(
        ImageTable({REFERENCE: entry}, "images.yaml"), tmp_path / "images", str(tmp_path / "bin")
    )


def test_a_pulled_image_has_the_modules_files_its_digest_and_a_runtime(
    tmp_path: Path, module: Path, runtime: Path
) -> None:
    image = store(tmp_path, module).pull(REFERENCE)
    assert (image.module / "main.tf").read_text() == "# one\n"
    assert (image.module / "child" / "main.tf").exists()
    assert not (image.module / ".terraform").exists()
    assert image.runtime == runtime
    assert re.fullmatch(
        r"docker-pullable://registry\.example\.com:5000/acme/cluster@sha256:[0-9a-f]{64}",
        image.image_id,
    )


def test_runs_share_a_modules_files_and_none_disturbs_another(
    tmp_path: Path, module: Path, runtime: Path
) -> None:
    images = store(tmp_path, module)
    one, other = tmp_path / "one", tmp_path / "other"
    images.pull(REFERENCE).share_module(one)
    images.pull(REFERENCE).share_module(other)
    for name in ("main.tf", "child/main.tf"):
        assert (one / name).samefile(other / name)
        assert not (one / name).is_symlink()
        assert (one / name).stat().st_mode & 0o222 == 0
    (one / "built.zip").write_text("made by a run")
    (one / "main.tf").unlink()
    assert sorted(path.name for path in other.iterdir()) == ["child", "main.tf"]
    assert (module / "main.tf").stat().st_mode & 0o200  # the module's own files stay as they are


def test_a_kept_file_that_a_run_changed_in_place_is_put_back(
    tmp_path: Path, module: Path, runtime: Path
) -> None:
    images = store(tmp_path, module)
    image = images.pull(REFERENCE)
    image.share_module(tmp_path / "one")
    changed = tmp_path / "one" / "main.tf"
    changed.chmod(0o644)
    changed.write_text("# changed by a run\n")
    again = images.pull(REFERENCE)
    assert again.digest == image.digest
    again.share_module(tmp_path / "two")
    assert (tmp_path / "two" / "main.tf").read_text() == "# one\n"


def test_a_module_is_copied_where_it_cannot_be_linked(
    tmp_path: Path, module: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", link)
    store(tmp_path, module).pull(REFERENCE).share_module(tmp_path / "one")
    assert (tmp_path / "one" / "child" / "main.tf").read_text() == "# child\n"


def test_a_pinned_digest_means_the_old_files_after_the_directory_was_edited(
    tmp_path: Path, module: Path, runtime: Path
) -> None:
    images = store(tmp_path, module)
    old = images.pull(REFERENCE)
    (module / "main.tf").write_text("# two\n")
    new = images.pull(REFERENCE)
    assert new.digest != old.digest
    again = images.pull(f"{repository(REFERENCE)}@sha256:{old.digest}")
    assert (again.module / "main.tf").read_text() == "# one\n"


def test_a_digest_that_a_listed_module_has_now_is_found(
    tmp_path: Path, module: Path, runtime: Path
) -> None:
    digest = store(tmp_path / "elsewhere", module, runtime=str(runtime)).pull(REFERENCE).digest
    image = store(tmp_path, module).pull(f"{repository(REFERENCE)}@sha256:{digest}")
    assert image.digest == digest


def test_an_unknown_reference_is_not_found_and_says_how_to_add_it(
    tmp_path: Path, module: Path, runtime: Path
) -> None:
    with pytest.raises(PullError, match="not found") as caught:
        store(tmp_path, module).pull("example.com/other:v1")
    assert caught.value.reason == "ErrImagePull"
    assert "images.yaml" in caught.value.do
    assert "example.com/other:v1: {module: DIRECTORY}" in caught.value.do
    assert REFERENCE in caught.value.do


def test_an_unknown_digest_is_a_manifest_unknown(
    tmp_path: Path, module: Path, runtime: Path
) -> None:
    with pytest.raises(PullError, match="manifest unknown"):
        store(tmp_path, module).pull(f"{repository(REFERENCE)}@sha256:{'0' * 64}")


def test_a_reference_that_is_none_is_told_apart(tmp_path: Path, module: Path) -> None:
    with pytest.raises(PullError) as caught:
        store(tmp_path, module).pull("two words")
    assert caught.value.reason == "InvalidImageName"


def test_a_missing_module_directory_and_a_missing_runtime_name_what_is_missing(
    tmp_path: Path, module: Path
) -> None:
    with pytest.raises(PullError, match="nowhere is not a directory"):
        store(tmp_path, tmp_path / "nowhere").pull(REFERENCE)
    with pytest.raises(PullError, match="terraform or tofu is not an executable on PATH"):
        store(tmp_path, module).pull(REFERENCE)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("reg:5000/a/b:v1", "reg:5000/a/b"),
        ("reg:5000/a/b", "reg:5000/a/b"),
        ("a/b@sha256:" + "0" * 64, "a/b"),
        ("b:v1@sha256:" + "0" * 64, "b"),
    ],
)
def test_repository_of_a_reference(reference: str, expected: str) -> None:
    assert repository(reference) == expected


def test_paths_in_the_table_are_relative_to_it(tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    file.write_text(
        "a/b:v1:\n  module: m\n  providers: ./p\n  runtime: bin/tofu\nc/d:v1: {module: /abs}\n"
    )
    table = ImageTable.from_file(file)
    first = table.entry("a/b:v1")
    assert first == Entry(
        module=tmp_path / "m", providers=tmp_path / "p", runtime=str(tmp_path / "bin/tofu")
    )
    assert table.entry("c/d:v1") == Entry(module=Path("/abs"))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: [\n", 1, "not YAML"),
        ("- a\n", 1, "maps image references"),
        ("a:\n  module: m\nb:\n  modul: m\n", 3, "no field 'modul'"),
        ("a:\n  runtime: tofu\n", 1, "'module' is missing"),
        ("a: m\n", 1, "must be a mapping"),
        ("a: {module: 7}\n", 1, "must be a text"),
    ],
)
def test_a_bad_table_names_file_and_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    file = tmp_path / "images.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        ImageTable.from_file(file)
    assert caught.value.where == f"{file}:{line}"


def test_a_missing_table_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        ImageTable.from_file(tmp_path / "none.yaml")


def _dangling(module: Path) -> None:
    (module / "dangling.tf").symlink_to("nowhere")


def _dangling_below(module: Path) -> None:
    (module / "child" / "more").mkdir()
    (module / "child" / "more" / "README").symlink_to("/nowhere/at/all")


def _link_to_itself(module: Path) -> None:
    (module / "self.tf").symlink_to("self.tf")


def _link_back(module: Path) -> None:
    (module / "child" / "back").symlink_to(module)


def _fifo(module: Path) -> None:
    os.mkfifo(module / "pipe.tf")


def _socket(module: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(module / "s"))


def _too_large(module: Path) -> None:
    with (module / "large").open("wb") as file:
        file.truncate(300 << 20)


def _gone(module: Path) -> None:
    module.rename(module.with_name("elsewhere"))


BAD_MODULES = {
    _dangling: ("dangling.tf", "nowhere"),
    _dangling_below: ("child/more/README", "/nowhere/at/all"),
    _link_to_itself: ("self.tf", "leads nowhere"),
    _link_back: ("child/back", "a directory that it lies in"),
    _fifo: ("pipe.tf", "neither a file nor a directory"),
    _socket: ("/s is", "neither a file nor a directory"),
    _too_large: ("larger than an image should be",),
    _gone: ("is not a directory",),
}


@pytest.mark.parametrize("spoil", BAD_MODULES)
@pytest.mark.parametrize("ask", [ImageStore.pull, ImageStore.check])
def test_a_module_that_no_image_can_hold_is_refused_at_once_and_the_path_named(
    tmp_path: Path,
    module: Path,
    runtime: Path,
    spoil: Callable[[Path], None],
    ask: Callable[[ImageStore, str], object],
) -> None:
    spoil(module)
    with pytest.raises(PullError) as caught:
        ask(store(tmp_path, module), REFERENCE)
    told = str(caught.value)
    assert all(part in told for part in (REFERENCE, *BAD_MODULES[spoil])), told
    assert caught.value.do
    assert caught.value.reason == "ErrImagePull"
    assert not caught.value.of_this_machine
    assert not list((tmp_path / "images").glob("*"))


@pytest.mark.parametrize("ask", [ImageStore.pull, ImageStore.check])
@pytest.mark.parametrize("place", [".", "child", "child/main.tf"])
def test_what_this_user_may_not_read_is_this_machines_fault(
    tmp_path: Path,
    module: Path,
    runtime: Path,
    ask: Callable[[ImageStore, str], object],
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = module / place
    if closed.is_dir():
        _refuse(monkeypatch, "iterdir", closed)
    else:
        _refuse(monkeypatch, "open", closed)
    with pytest.raises(PullError, match="Permission denied") as caught:
        ask(store(tmp_path, module), REFERENCE)
    assert str(closed) in str(caught.value)
    assert caught.value.of_this_machine
    assert caught.value.reason == "CreateContainerError"


def _refuse(monkeypatch: pytest.MonkeyPatch, name: str, closed: Path) -> None:
    """Let a method of `Path` fail for this one, as for a user without the right (root has all)."""
    really = getattr(Path, name)

    def refusing(path: Path, *arguments: object, **more: object) -> object:
        if path == closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return really(path, *arguments, **more)

    monkeypatch.setattr(Path, name, refusing)


@pytest.mark.parametrize("wanted", ["", "no-such", "./no-such", "/nonexistent/tofu"])
@pytest.mark.parametrize("ask", [ImageStore.pull, ImageStore.check])
def test_a_missing_runtime_is_this_machines_fault_and_says_what_to_do(
    tmp_path: Path, module: Path, ask: Callable[[ImageStore, str], object], wanted: str
) -> None:
    with pytest.raises(PullError, match=wanted or "terraform or tofu") as caught:
        ask(store(tmp_path, module, runtime=wanted), REFERENCE)
    assert caught.value.of_this_machine
    assert "install it" in caught.value.do


def test_checking_keeps_nothing(tmp_path: Path, module: Path, runtime: Path) -> None:
    store(tmp_path, module).check(REFERENCE)
    assert not (tmp_path / "images").exists()


def test_a_row_added_to_the_file_is_found_without_a_restart(
    tmp_path: Path, module: Path, runtime: Path
) -> None:
    file = tmp_path / "images.yaml"
    file.write_text("")
    images = ImageStore(ImageTable.from_file(file), tmp_path / "images", str(runtime.parent))
    with pytest.raises(PullError, match="not found"):
        images.pull("a/b:v1")
    file.write_text("a/b:v1: [")
    with pytest.raises(PullError, match="not YAML"):
        images.pull("a/b:v1")
    file.write_text("a/b:v1: {module: module}")
    assert images.pull("a/b:v1").reference == "a/b:v1"
