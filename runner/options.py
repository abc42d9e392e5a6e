"""The flags of every command: logging and version (runner.md: Global flags)."""

import re
from typing import NamedTuple

from runner import flags, version
from runner.durations import SECOND
from runner.flags import Flag, Values

# Gate -> (stage, default), see runner.md: Global flags. AllAlpha and AllBeta switch every gate of
# their stage.
_GATES = {
    "AllAlpha": ("", False),
    "AllBeta": ("", False),
    "ContextualLogging": ("Beta", True),
    "LoggingAlphaOptions": ("Alpha", False),
    "LoggingBetaOptions": ("Beta", True),
}
_QUANTITY = (
    r"(?a:([+-]?)(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})"
    r"(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d{1,2})?)"
)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class LoggingFlagError(ValueError):
    """Logging flags that parse but do not go together."""


class LogOptions(NamedTuple):
    """How the runner's own log is written. Sizes are bytes, the frequency nanoseconds."""

    format: str
    verbosity: int
    vmodule: tuple[tuple[str, int], ...]
    split: bool
    buffer_size: int
    flush_frequency: int


def _gates(text: str) -> str:
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"missing a value for {item}: write {item}=true or {item}=false")
        if name.strip() not in _GATES:
            raise ValueError(f"unrecognized feature gate: {name.strip()}")
        flags.boolean(value.strip())
    return text


def _quantity(text: str) -> int:
    match = re.fullmatch(_QUANTITY, text)
    if match is None:
        raise ValueError("not a quantity, such as 65536 or 64Ki")
    sign, digits, suffix = match[1], match[2], match[3] or ""
    whole, _, fraction = digits.partition(".")
    number = int(whole + fraction or "0")
    if suffix in _BINARY:
        power, scale = -len(fraction), 1024 ** _BINARY[suffix]
    else:
        exponent = int(suffix[1:]) if suffix[:1] in ("e", "E") and suffix[1:] else _DECIMAL[suffix]
        power, scale = exponent - len(fraction), 1
    value: int = number * scale * 10 ** max(power, 0)
    size: int = -(-value // 10 ** max(-power, 0))  # a part of a byte counts as one
    if sign == "-" and size:
        raise ValueError("must not be negative")
    return size


def _vmodule(text: str) -> str:
    _patterns(text)
    return text


def _patterns(text: str) -> tuple[tuple[str, int], ...]:
    found = []
    for item in filter(None, text.split(",")):
        pattern, equals, level = item.partition("=")
        if not equals or not pattern or not level:
            raise ValueError("syntax error: expected pattern=N,...")
        found.append((pattern, flags.integer(level)))
    return tuple(found)


def _version(text: str) -> str:
    if text.startswith("v"):
        built = re.escape(version.VERSION.partition("-")[0].partition("+")[0])
        if not re.fullmatch(rf"v{built}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", text):
            raise ValueError(f"must be v{version.VERSION}, only with another suffix")
        return text
    if text == "raw":
        return text
    return "true" if flags.boolean(text) else "false"


GLOBAL_FLAGS = (
    Flag(
        "feature-gates",
        "key=value,...",
        "",
        "Enable alpha or beta logging features. Gates: " + ", ".join(_GATES),
        _gates,
    ),
    flags.duration("log-flush-frequency", 5 * SECOND, "Longest interval between log flushes"),
    Flag(
        "log-json-info-buffer-size",
        "quantity",
        0,
        "[Alpha] Buffer info messages of the json format with split streams; 0 disables it",
        _quantity,
    ),
    flags.switch(
        "log-json-split-stream",
        "[Alpha] json format: errors to standard error, info to standard output",
    ),
    Flag(
        "log-text-info-buffer-size",
        "quantity",
        0,
        "[Alpha] Buffer info messages of the text format with split streams; 0 disables it",
        _quantity,
    ),
    flags.switch(
        "log-text-split-stream",
        "[Alpha] text format: errors to standard error, info to standard output",
    ),
    flags.text("logging-format", "text", "Log format: text or json"),
    flags.number("v", "Log verbosity", kind="Level", short="v"),
    Flag(
        "version",
        "version",
        "false",
        "Print version information and exit; raw prints the full build information, "
        "vX.Y.Z sets the reported version",
        _version,
        bare="true",
    ),
    Flag("vmodule", "pattern=N,...", "", "Verbosity per file, text format only", _vmodule),
)
HELP_FLAG = flags.switch("help", "Print this help", short="h")


def log_options(values: Values) -> LogOptions:
    """The typed logging options. Raises LoggingFlagError when they do not go together."""
    gates = _enabled(_text(values, "feature-gates"))
    form = _text(values, "logging-format")
    if form not in ("text", "json"):
        raise LoggingFlagError(f"Unsupported log format: {form!r} (use text or json)")
    if form == "json" and not gates["LoggingBetaOptions"]:
        raise LoggingFlagError("format json needs the feature gate LoggingBetaOptions")
    for name in ("json-split-stream", "json-info-buffer-size"):
        _needs_alpha(values, "log-" + name, gates["LoggingAlphaOptions"])
    for name in ("text-split-stream", "text-info-buffer-size"):
        _needs_alpha(values, "log-" + name, gates["LoggingAlphaOptions"])
    if form == "json" and values["vmodule"]:
        raise LoggingFlagError("--vmodule works with the text format only")
    split = values[f"log-{form}-split-stream"] is True
    return LogOptions(
        format=form,
        verbosity=_integer(values, "v"),
        vmodule=_patterns(_text(values, "vmodule")),
        split=split,
        buffer_size=_integer(values, f"log-{form}-info-buffer-size") if split else 0,
        flush_frequency=_integer(values, "log-flush-frequency"),
    )


def _needs_alpha(values: Values, name: str, enabled: bool) -> None:
    if values[name] and not enabled:
        raise LoggingFlagError(f"--{name} is alpha and needs the feature gate LoggingAlphaOptions")


def _enabled(text: str) -> dict[str, bool]:
    asked = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        asked[name.strip()] = flags.boolean(value.strip())
    enabled = {}
    for name, (stage, default) in _GATES.items():
        everything = asked.get(f"All{stage}", default) if stage else default
        enabled[name] = asked.get(name, everything)
    return enabled


def _text(values: Values, name: str) -> str:
    value = values[name]
    assert isinstance(value, str)
    return value


def _integer(values: Values, name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value
