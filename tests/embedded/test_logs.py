"""Logs are read in blocks, and say the same as line by line (local-mode.md: The node agent)."""

from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captfctl.embedded.agent import logs
from captfctl.embedded.agent.containers import Container
from captfctl.embedded.agent.logs import LogOptions, LogReader
from captfctl.embedded.supervisor.records import LOG
from tests.support.clock import FakeClock

CLOCK = FakeClock()


class Row(NamedTuple):
    age: int
    whole: bool
    text: bytes

    @property
    def stamp(self) -> bytes:
        moment = CLOCK.now() - timedelta(seconds=self.age)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.000000000Z").encode()

    @property
    def line(self) -> bytes:
        return b"%s stdout %s %s\n" % (self.stamp, b"F" if self.whole else b"P", self.text)

    @property
    def shown(self) -> bytes:
        return self.text + (b"\n" if self.whole else b"")


TEXTS = st.binary(max_size=40).map(lambda data: data.replace(b"\n", b" F "))
ROWS = st.lists(
    st.builds(Row, age=st.integers(0, 100), whole=st.booleans(), text=TEXTS), max_size=30
).map(lambda rows: sorted(rows, key=lambda row: -row.age))


def read(rows: list[Row], older: int, unfinished: bytes, options: LogOptions, home: Path) -> bytes:
    (home / f"{LOG}.1").write_bytes(b"".join(row.line for row in rows[:older]))
    (home / LOG).write_bytes(b"".join(row.line for row in rows[older:]) + unfinished)
    return b"".join(LogReader(Container(home, "uid"), options, CLOCK))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log")


@settings(deadline=None)
@given(
    rows=ROWS,
    older=st.integers(0, 30),
    unfinished=st.sampled_from([b"", b"2026-", b"2026-01-01T00:00:00.0Z stdout F half"]),
    tail=st.none() | st.integers(0, 40),
    since=st.none() | st.integers(0, 110),
    stamps=st.booleans(),
    limit=st.none() | st.integers(1, 400),
    block=st.integers(1, 200),
)
def test_blocks_say_what_lines_say(
    home, rows, older, unfinished, tail, since, stamps, limit, block
):
    wanted = rows if tail is None else rows[max(len(rows) - tail, 0) :]
    wanted = [row for row in wanted if since is None or row.age <= since]
    shown = b"".join((row.stamp + b" " if stamps else b"") + row.shown for row in wanted)
    options = LogOptions(tail_lines=tail, since_seconds=since, timestamps=stamps, limit_bytes=limit)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(logs, "_BLOCK", block)
        assert read(rows, older, unfinished, options, home) == shown[:limit]
