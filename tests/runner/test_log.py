"""The runner's own log: text and JSON lines, levels, streams, buffers (runner.md: The log)."""

import json
import re

import pytest

from runner.log import Log
from runner.options import LogOptions
from runner.sinks import Sink

PLAIN = LogOptions("text", 0, (), split=False, buffer_size=0, flush_frequency=5 * 10**9)


class Streams:
    def __init__(self, path):
        self._files = [(path / name).open("w+b") for name in ("out", "err")]
        self.out, self.err = (Sink(file.fileno()) for file in self._files)

    def close(self):
        for file in self._files:
            file.close()

    def read(self):
        texts = []
        for file in self._files:
            file.seek(0)
            texts.append(file.read().decode())
        return texts


@pytest.fixture
def streams(tmp_path):
    streams = Streams(tmp_path)
    yield streams
    streams.close()


def test_text_lines_carry_header_message_and_fields(streams):
    log = Log(PLAIN, streams.out, streams.err)
    log.info('Say "hi"', step="a\nb", exit=3, vars=["X", "Y"], seconds=1.5, on=True)
    out, err = streams.read()
    assert out == ""
    assert re.fullmatch(
        r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_log\.py:\d+\] "
        r'"Say \\"hi\\"" step="a\\nb" exit=3 vars=\["X","Y"\] seconds=1.5 on=true\n',
        err,
    )


def test_json_lines_are_objects(streams):
    log = Log(PLAIN._replace(format="json"), streams.out, streams.err)
    log.info("Step started", step="init")
    log.error("no such file", "The result could not be written")
    info, error = map(json.loads, streams.read()[1].splitlines())
    assert info["msg"] == "Step started" and info["v"] == 0 and info["step"] == "init"
    assert error["err"] == "no such file" and "v" not in error
    assert {"ts", "caller"} <= set(info)


def test_split_streams_send_info_to_standard_output(streams):
    log = Log(PLAIN._replace(split=True), streams.out, streams.err)
    log.info("told")
    log.error("why", "failed")
    out, err = streams.read()
    assert '"told"' in out and '"failed" err="why"' in err
    assert "told" not in err


def test_a_buffer_keeps_info_lines_until_it_is_full_flushed_or_an_error_comes(streams):
    log = Log(PLAIN._replace(split=True, buffer_size=1000), streams.out, streams.err)
    log.info("first")
    assert streams.read()[0] == ""
    assert 0 < log.flush_due() <= 5
    log.flush()
    assert "first" in streams.read()[0]
    log.info("second")
    log.error("why", "failed")
    assert "second" in streams.read()[0]
    log.info("x" * 1000)
    assert "xxx" in streams.read()[0]


def test_levels_follow_the_flag_and_the_pattern_of_the_file(streams):
    log = Log(PLAIN._replace(verbosity=1), streams.out, streams.err)
    log.info("shown", level=1)
    log.info("hidden", level=2)
    quiet = Log(PLAIN._replace(verbosity=9, vmodule=(("test_l*", 0),)), streams.out, streams.err)
    quiet.info("quiet", level=1)
    err = streams.read()[1]
    assert "shown" in err and "hidden" not in err and "quiet" not in err


def test_every_line_passes_the_redaction(streams):
    log = Log(PLAIN, streams.out, streams.err)
    log.redact_with(lambda line: line.replace(b"hunter2", b"(sensitive)"))
    log.info("password is hunter2", vars=["hunter2"])
    assert "hunter2" not in streams.read()[1]


def test_a_closed_stream_loses_lines_and_nothing_else(tmp_path):
    import os

    reading, writing = os.pipe()
    os.close(reading)
    log = Log(PLAIN, Sink(writing), Sink(writing))
    log.info("nobody reads this")
    os.close(writing)
    log.info("nor this")
