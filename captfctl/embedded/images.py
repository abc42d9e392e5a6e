"""Which directory of this machine stands for a source image (local-mode.md: Images).

A source image is a module, optionally a provider mirror, and a runtime
(runner.md: What an image must hold). Without a container engine the agent looks the reference up in
a table that the user writes:

    registry.example.com/acme/cluster:v1:
      module: ./modules/cluster       # required; relative to the table's file
      providers: ./mirror             # optional: a provider mirror
      runtime: tofu                   # optional: a path, or a name on PATH

The module's files are kept by their digest, as a registry keeps them: a reference pinned as
`repository@sha256:…` goes on meaning what was run, also after the directory was edited. Left out:
tags that move by themselves, pull secrets, platforms, and throwing away old digests.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from captfctl.embedded.module_files import digest_of, module_files
from captfctl.errors import CaptfError, InputError, Source
from captfctl.kubeyaml import Parsed, Place, Problem, documents
from runner import wire

T = TypeVar("T")

_FIELDS = ("module", "providers", "runtime")
_DEFAULT_RUNTIMES = ("terraform", "tofu")
_DIGEST = re.compile(r"@sha256:([0-9a-f]{64})$")


NODE_REASON = "CreateContainerError"
"""The waiting reason where the fault is this machine's, not that of the image or the table."""


class PullError(CaptfError):
    """An image cannot be had. `reason` is the container's waiting reason, as a kubelet gives it."""

    code = "ImagePull"

    @property
    def of_this_machine(self) -> bool:
        """Whether the machine lacks something that no row of an image table can provide."""
        return self.reason == NODE_REASON

    def __init__(self, what: str, *, reason: str = "ErrImagePull", **facts: str) -> None:
        super().__init__(what, **facts)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of the table. `runtime` empty: `terraform` or `tofu` from PATH."""

    module: Path
    providers: Path | None = None
    runtime: str = ""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image at hand: `module` is a directory that never changes, `runtime` an absolute path."""

    reference: str
    digest: str
    module: Path
    providers: Path | None
    runtime: Path

    @property
    def image_id(self) -> str:
        """As a container status has it; the manager pins the digest in it
        (runs.md: Records of finished applies)."""
        return f"docker-pullable://{repository(self.reference)}@sha256:{self.digest}"

    def share_module(self, target: Path) -> None:
        """Put the module at `target`, whole or not at all: directories of its own with hard links
        to the kept files, which are read-only. So runs share the files, a run that adds some does
        not disturb another, and none sees where they are kept. Raises `OSError`."""
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.new")
        shutil.rmtree(beside, ignore_errors=True)
        shutil.copytree(self.module, beside, copy_function=_link)
        beside.rename(target)


def _link(source: str, target: str) -> None:
    """A copy where the file system cannot link, or is another one."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def repository(reference: str) -> str:
    """The reference without tag and digest; the port of a registry stays."""
    name = reference.partition("@")[0]
    path, slash, last = name.rpartition("/")
    return f"{path}{slash}{last.partition(':')[0]}"


def has_module_files(directory: Path) -> bool:
    """Whether a runner would take `directory` for a module (runner.md: Preflight)."""
    try:
        return any(file.name.endswith(wire.MODULE_SUFFIXES) for file in directory.iterdir())
    except OSError:
        return False


class ImageTable:
    """References and what stands for them."""

    def __init__(self, entries: Mapping[str, Entry] | None = None, source: str = "") -> None:
        """`source` names the file the table came from, for messages."""
        self._entries = dict(entries or {})
        self._source = source
        self._file: Path | None = None
        self._seen: tuple[int, int] | None = None

    @classmethod
    def from_file(cls, path: Path) -> "ImageTable":
        """A table that follows later edits of the file.

        Raises `InputError` with the line when the file cannot be used.
        """
        table = cls(source=str(path))
        table._file = path
        table.refresh()
        return table

    def refresh(self) -> None:
        """Read the file again when it has changed. Raises `InputError`; the rows stay then."""
        if self._file is None:
            return
        try:
            found = self._file.stat()
        except OSError as problem:
            raise _unreadable(self._file, problem) from None
        seen = (found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._entries = _read(self._file)
            self._seen = seen

    def __contains__(self, reference: str) -> bool:
        return reference in self._entries

    @property
    def source(self) -> str:
        """The file the table came from; empty when it came from none."""
        return self._source

    @property
    def references(self) -> list[str]:
        """Every reference of the table, sorted."""
        return sorted(self._entries)

    def add(self, reference: str, entry: Entry) -> None:
        """Add a row, or replace it."""
        self._entries[reference] = entry

    def entry(self, reference: str) -> Entry | None:
        """The row of a reference; None when there is none."""
        return self._entries.get(reference)

    def same_repository(self, reference: str) -> list[tuple[str, Entry]]:
        """The rows whose reference differs in tag or digest only."""
        wanted = repository(reference)
        return [row for row in self._entries.items() if repository(row[0]) == wanted]

    def how_to_add(self, reference: str) -> str:
        """What to do about a reference that the table has not."""
        where = f"the image table {self._source}" if self._source else "an image table (--images)"
        known = ", ".join(self.references[:5]) or "none"
        return (
            f"add it to {where}: '{reference}: {{module: DIRECTORY}}' (images it has now: {known})"
        )


class ImageStore:
    """Images by digest, in a directory of the agent."""

    def __init__(self, table: ImageTable, directory: Path, search_path: str) -> None:
        """`search_path` is where runtimes named without a directory are looked for."""
        self._table = table
        self._directory = directory
        self._search_path = search_path

    def pull(self, reference: str) -> Image:
        """The image of `reference`. Raises `PullError`."""
        return self._told(reference, self._pull)

    def check(self, reference: str) -> None:
        """Raise the `PullError` that pulling `reference`, which names no digest, would."""
        self._told(reference, self._check)

    def _told(self, reference: str, do: Callable[[str], T]) -> T:
        """Do it; whatever is wrong becomes a `PullError` that names the image."""
        if not reference or reference != reference.strip() or " " in reference:
            raise PullError(f"'{reference}' is no image reference", reason="InvalidImageName")
        try:
            self._table.refresh()
            return do(reference)
        except PullError:
            raise
        except CaptfError as problem:
            raise PullError(f"image {reference}: {problem}", do=problem.do) from None
        except OSError as problem:
            raise PullError(
                f"image {reference}: {_cause(problem)}",
                reason=NODE_REASON,
                do="make it readable for the user who runs captfctl",
            ) from None

    def _pull(self, reference: str) -> Image:
        pinned = _DIGEST.search(reference)
        if pinned:
            return self._by_digest(reference, pinned[1])
        entry = self._entry(reference)
        return self._image(reference, entry, self._keep(entry))

    def _check(self, reference: str) -> None:
        entry = self._entry(reference)
        for name in module_files(entry.module):
            with (entry.module / name).open("rb"):
                pass
        self._image(reference, entry, "")

    def _entry(self, reference: str) -> Entry:
        entry = self._table.entry(reference)
        if entry is None:
            raise _not_found(reference, self._table)
        return entry

    def _by_digest(self, reference: str, digest: str) -> Image:
        rows = self._table.same_repository(reference)
        if not rows:
            raise _not_found(reference, self._table)
        if not self._intact(digest):
            for _, entry in rows:
                if self._keep(entry) == digest:
                    return self._image(reference, entry, digest)
            raise PullError(
                f"image {reference}: not found: manifest unknown",
                why="none of the modules of this repository in the image table has, or had when "
                "it was run here, the content with this digest",
                do=self._table.how_to_add(repository(reference)),
            )
        return self._image(reference, rows[0][1], digest)

    def _keep(self, entry: Entry) -> str:
        """Copy the module's files under their digest, unless they are there; return it.

        Files that a run changed in place, which only root can, are replaced: runs share them.
        """
        files = module_files(entry.module)
        digest = digest_of(entry.module, files)
        kept = self._directory / digest
        if self._intact(digest):
            return digest
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._directory / f".{digest}.{os.getpid()}.{id(files)}"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        try:
            for name in files:
                target = beside / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(entry.module / name, target)
                target.chmod(target.stat().st_mode & ~0o222)
            if not self._intact(digest):
                shutil.rmtree(kept, ignore_errors=True)
            beside.rename(kept)
        except OSError:
            shutil.rmtree(beside, ignore_errors=True)
            if not self._intact(digest):  # another thread was quicker
                raise
        return digest

    def _intact(self, digest: str) -> bool:
        kept = self._directory / digest
        return kept.is_dir() and digest_of(kept, module_files(kept)) == digest

    def _image(self, reference: str, entry: Entry, digest: str) -> Image:
        if entry.providers is not None and not entry.providers.is_dir():
            raise PullError(
                f"image {reference}: its providers directory {entry.providers} is not a directory",
                do="correct the image table",
            )
        return Image(
            reference=reference,
            digest=digest,
            module=self._directory / digest,
            providers=entry.providers,
            runtime=self._runtime(reference, entry.runtime),
        )

    def _runtime(self, reference: str, wanted: str) -> Path:
        for name in [wanted] if wanted else _DEFAULT_RUNTIMES:
            found = shutil.which(name, path=self._search_path)
            if found:
                return Path(found).absolute()
        sought = wanted or " or ".join(_DEFAULT_RUNTIMES)
        where = "an executable file" if "/" in sought else "an executable on PATH"
        raise PullError(
            f"image {reference}: no runtime: {sought} is not {where}",
            reason=NODE_REASON,
            do="install it, or name another as 'runtime:' in the image table",
        )


def _not_found(reference: str, table: ImageTable) -> PullError:
    return PullError(
        f"image {reference}: not found",
        why="this node has no container engine and its image table has no such reference",
        do=table.how_to_add(reference),
    )


def _cause(problem: OSError | UnicodeDecodeError) -> str:
    if isinstance(problem, OSError):
        text = problem.strerror or str(problem)
        return f"{text}: {problem.filename}" if problem.filename else text
    return "not UTF-8 text"


def _unreadable(path: Path, problem: OSError | UnicodeDecodeError) -> InputError:
    return InputError(
        f"cannot read the image table: {_cause(problem)}",
        where=str(path),
        do="check the path given with --images",
    )


def _read(path: Path) -> dict[str, Entry]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise _unreadable(path, problem) from None
    problems: list[Problem] = []
    found = [parsed for parsed in documents(text, problems) if parsed.value is not None]
    for wrong in problems:
        where = str(Source(str(path), wrong.line))
        raise InputError(f"{wrong.path}: {wrong.message}".removeprefix(": "), where=where)
    if len(found) > 1:
        where = str(Source(str(path), found[1].place.line))
        raise InputError("an image table is one document: remove the line ---", where=where)
    return _entries(found[0], path) if found else {}


def _entries(parsed: Parsed, path: Path) -> dict[str, Entry]:
    document, place = parsed.value, parsed.place
    if not isinstance(document, dict):
        raise InputError(
            "an image table maps image references to directories",
            where=str(Source(str(path), 1)),
            do="write 'REFERENCE: {module: DIRECTORY}' lines",
        )
    base = path.absolute().parent
    return {
        reference: _entry(reference, row, base, _at(place, reference, path))
        for reference, row in document.items()
    }


def _at(mapping: Place, key: str, path: Path) -> str:
    return str(Source(str(path), mapping.below[key].line))


def _entry(reference: str, row: Any, base: Path, where: str) -> Entry:
    if not isinstance(row, dict):
        raise InputError(
            f"{reference}: must be a mapping with 'module'",
            where=where,
            do="write {module: DIRECTORY}",
        )
    for name, value in row.items():
        if name not in _FIELDS:
            raise InputError(
                f"{reference}: there is no field '{name}'",
                where=where,
                do=f"fields are {', '.join(_FIELDS)}",
            )
        if not isinstance(value, str) or not value:
            raise InputError(f"{reference}: '{name}' must be a text that is not empty", where=where)
    if "module" not in row:
        raise InputError(f"{reference}: 'module' is missing", where=where)
    runtime = row.get("runtime", "")
    if "/" in runtime:
        runtime = str(base / Path(runtime).expanduser())
    providers = row.get("providers")
    return Entry(
        module=base / Path(row["module"]).expanduser(),
        providers=base / Path(providers).expanduser() if providers else None,
        runtime=runtime,
    )
