"""Go durations and integers, as flags take them (runner.md: Reading flags)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import durations, flags
from runner.options import GLOBAL_FLAGS, log_options
from runner.run_options import RUN_FLAGS

SECOND = durations.SECOND


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("90s", 90 * SECOND),
        ("1h2m3.5s", 3723 * SECOND + SECOND // 2),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("-1.5h", -5400 * SECOND),
        ("+2m", 120 * SECOND),
        ("1us", 1000),
        ("1µs", 1000),
        ("1μs", 1000),
        ("100ms", SECOND // 10),
        ("0.1ns", 0),
        ("2562047h47m16.854775807s", (1 << 63) - 1),
        ("1.00000000000000000000000000000000000009s", SECOND),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text, value):
    assert durations.parse(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "300", "1", "s", ".s", "1 s", "1d", "1h 2m", "--1s", "-", "1_0s", "٣s", "300000h" * 99],
)
def test_anything_else_is_no_duration(text):
    with pytest.raises(ValueError, match=r"."):
        durations.parse(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.04, "0s"),
        (0.1, "100ms"),
        (0.96, "1s"),
        (12.34, "12.3s"),
        (60.0, "1m0s"),
        (65.3, "1m5.3s"),
        (3600.0, "1h0m0s"),
    ],
)
def test_a_duration_is_spoken_to_100_ms(seconds, text):
    assert durations.spoken(seconds) == text


@given(st.integers(0, 10**15), st.sampled_from(["ns", "us", "ms", "s"]))
def test_whole_numbers_of_a_unit_are_exact(number, unit):
    factor = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[unit]
    if number * factor < 1 << 63:
        assert durations.parse(f"{number}{unit}") == number * factor


@pytest.mark.parametrize(
    "text", ["", "1.0", "1e3", "ten", "0x", "1 ", "010", "9223372036854775808"]
)
def test_anything_but_a_plain_integer_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        flags.integer(text)


def _log_values(*arguments: str) -> flags.Values:
    accepted = flags.FlagSet(GLOBAL_FLAGS)
    values = accepted.defaults()
    assert accepted.parse(arguments, values) == []
    return values


def test_alpha_options_work_with_their_gate():
    values = _log_values(
        "--feature-gates=LoggingAlphaOptions=true",
        "--log-text-split-stream",
        "--log-text-info-buffer-size=64Ki",
        "--log-flush-frequency=1s",
        "-v5",
        "--vmodule=run=2,exec*=9",
    )
    chosen = log_options(values)
    assert (chosen.split, chosen.buffer_size, chosen.verbosity) == (True, 65536, 5)
    assert chosen.vmodule == (("run", 2), ("exec*", 9))
    assert log_options(_log_values("--feature-gates=AllAlpha=true", "--log-json-split-stream"))


def test_json_needs_its_gate_which_is_on_by_default():
    assert log_options(_log_values("--logging-format=json")).format == "json"
    for gates in ("LoggingBetaOptions=false", "AllBeta=false"):
        with pytest.raises(ValueError, match="LoggingBetaOptions"):
            log_options(_log_values("--logging-format=json", f"--feature-gates={gates}"))


@pytest.mark.parametrize(
    "argument",
    [
        "--feature-gates=Bogus=true",
        "--feature-gates=AllAlpha",
        "--feature-gates=AllAlpha=perhaps",
        "--log-json-info-buffer-size=much",
        "--log-json-info-buffer-size=-1",
        "--vmodule=run",
        "--log-flush-frequency=5",
        "-w",
        "--=x",
    ],
)
def test_a_bad_global_flag_is_refused(argument):
    with pytest.raises(flags.FlagError, match=r"."):
        _log_values(argument)


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("100", 100), ("64Ki", 65536), ("1.5k", 1500), ("1e3", 1000)]
)
def test_quantities_are_bytes(text, size):
    values = _log_values(f"--log-json-info-buffer-size={text}")
    assert values["log-json-info-buffer-size"] == size


@given(st.lists(st.text(max_size=20), max_size=6))
def test_no_flag_list_is_answered_with_anything_but_a_flag_error(arguments):
    accepted = flags.FlagSet(GLOBAL_FLAGS, RUN_FLAGS)
    values = accepted.defaults()
    try:
        accepted.parse(arguments, values)
    except flags.FlagError:
        return
    assert set(values) == {flag.name for flag in accepted.flags}
