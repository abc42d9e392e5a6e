"""Where a store's objects are kept: nowhere but in memory, or in an SQLite file.

One transaction per write, or per collection that is deleted. In WAL mode without a sync per commit,
an acknowledged write survives the end of the process by whatever means; only the machine losing
power may take the last ones.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from captfctl.cluster.errors import Unavailable
from captfctl.errors import EnvironmentFault

FILE = "store.db"
LOCK = "lock"
_LAYOUT = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    storage TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (storage, key)
);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT OR IGNORE INTO state VALUES ('version', 0);
"""
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)"
_DELETE = "DELETE FROM objects WHERE storage = ? AND key = ?"
_ADVANCE = "UPDATE state SET value = ? WHERE name = 'version'"


class StoredObject(NamedTuple):
    """One object as it is kept."""

    storage: str
    key: str
    version: int
    body: bytes


class Row(NamedTuple):
    """What becomes of one object of a write: its new body, or None where it is removed."""

    key: str
    version: int
    body: bytes | None


class Journal(Protocol):
    """Makes writes durable, and knows them again. Guarded by the store's lock."""

    def version(self) -> int:
        """The version of the latest write ever made."""
        ...

    def objects(self) -> Iterator[StoredObject]:
        """Everything that is kept."""
        ...

    def write(self, storage: str, rows: Sequence[Row]) -> None:
        """Write all of them, in order of their versions, or none.

        Raises `Unavailable` when that could not be made durable: nothing is stored then.
        """
        ...

    def close(self) -> None:
        """Release what is kept."""
        ...


class NoJournal:
    """Keeps nothing."""

    def version(self) -> int:
        return 0

    def objects(self) -> Iterator[StoredObject]:
        return iter(())

    def write(self, storage: str, rows: Sequence[Row]) -> None:
        pass

    def close(self) -> None:
        pass


class SqliteJournal:
    """An SQLite file in a directory of its own, which no other process may open meanwhile."""

    def __init__(self, directory: Path) -> None:
        """Raises `EnvironmentFault`."""
        self._where = directory
        self._lock = _locked(directory)
        try:
            self._db = self._connect()
        except BaseException:
            os.close(self._lock)
            raise

    def _connect(self) -> sqlite3.Connection:
        path = self._where / FILE
        try:
            # Objects hold credentials. SQLite gives its other files the permissions of this one.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise self._fault("the store cannot be opened", error) from None
        try:
            self._prepare(db)
        except sqlite3.DatabaseError as error:
            db.close()
            raise self._fault("the store cannot be opened", error) from None
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        layout = db.execute("PRAGMA user_version").fetchone()[0]
        if layout not in (0, _LAYOUT):
            raise EnvironmentFault(
                "the store was written by another release",
                where=str(self._where / FILE),
                why=f"its layout is number {layout}, this release knows {_LAYOUT}",
                do="use the captfctl that wrote it, or another data directory",
            )
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        db.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version = {_LAYOUT};COMMIT;")

    def version(self) -> int:
        found = self._db.execute("SELECT value FROM state WHERE name = 'version'").fetchone()
        return int(found[0])

    def objects(self) -> Iterator[StoredObject]:
        rows = self._db.execute("SELECT storage, key, version, body FROM objects")
        return map(StoredObject._make, rows)

    def write(self, storage: str, rows: Sequence[Row]) -> None:
        db = self._db
        try:
            db.execute("BEGIN IMMEDIATE")
            for key, version, body in rows:
                if body is None:
                    db.execute(_DELETE, (storage, key))
                else:
                    db.execute(_PUT, (storage, key, version, body))
            db.execute(_ADVANCE, (rows[-1].version,))
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            raise Unavailable(
                "the store could not write",
                where=str(self._where),
                why=str(error),
                do="free disk space or make the directory writable, then try again",
            ) from error

    def _undo(self) -> None:
        # SQLite rolls back by itself after some errors; a second time is an error of its own.
        if self._db.in_transaction:
            try:
                self._db.execute("ROLLBACK")
            except sqlite3.Error:
                self._db.close()
                self._db = self._connect()

    def close(self) -> None:
        self._db.close()
        os.close(self._lock)

    def _fault(self, what: str, error: Exception) -> EnvironmentFault:
        return EnvironmentFault(
            what, where=str(self._where / FILE), why=str(error), do=_advice(error)
        )


def _advice(error: Exception) -> str:
    text = str(error)
    if "full" in text or "disk I/O" in text:
        return "free disk space, or choose another data directory"
    if "readonly" in text or "unable to open" in text:
        return "make the directory writable, or choose another data directory"
    return "restore the file from a copy, or move it away to start with an empty store"


def _locked(directory: Path) -> int:
    """A descriptor that holds the directory's lock until it is closed."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise EnvironmentFault(
            "the data directory cannot be used",
            where=str(directory),
            why=error.strerror or str(error),
            do="choose a directory you can write to",
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise EnvironmentFault(
            "the data directory is in use",
            where=str(directory),
            why="another captfctl process holds its lock",
            do="stop that process, or choose another data directory",
        ) from None
    return lock


def in_use(directory: Path) -> bool:
    """Whether some process has the store in `directory` open."""
    try:
        lock = os.open(directory / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
