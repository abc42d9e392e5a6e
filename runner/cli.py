"""The command line: `copy`, `run`, `version` and what goes wrong before them
(runner.md: Commands)."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from runner import flags, options, version
from runner.flags import Flag, FlagError, FlagSet, Values
from runner.options import GLOBAL_FLAGS, HELP_FLAG
from runner.signals import Cancellation

OK = 0
FAILURE = 1
USAGE = 2

_SYNOPSIS = {
    "": """Usage:
  runner [global flags] copy <dest>
  runner [global flags] run --op=<op> [flags]
  runner [global flags] version
  runner --version[=raw]
""",
    "copy": "Usage:\n  runner [global flags] copy <dest>\n",
    "run": "Usage:\n  runner [global flags] run --op=<op> [flags]\n",
    "version": "Usage:\n  runner [global flags] version\n",
}
_ABOUT = {
    "": """The program inside every Job: prepares the working directory, runs the module's runtime
step by step and leaves a small result.

Commands:
  copy     Copy this program to <dest>, mode 0755
  run      Run one operation
  version  Print the program's name and version
""",
    "copy": "Copies this program to <dest>, mode 0755.\n",
    "run": """Runs one operation of the module and writes its result to --result.

Operations:
  apply    init, validate, apply; with --guard-deletes or --expect-plan the plan is checked first
  destroy  init, destroy
  refresh  init, then the state is brought up to date with the real resources
  drift    init, refresh, then a plan that tells whether anything differs
  plan     init, validate, plan; nothing is applied
  restore  init, then a state backup is pushed and listed

Environment:
  CAPTF_SERVICE_ACCOUNT_DIR  directory with ca.crt and token for progress events, instead of
                             /var/run/secrets/kubernetes.io/serviceaccount
""",
    "version": "Prints the program's name and version.\n",
}


class _UsageError(Exception):
    """Bad input. `show_usage` asks for the command's usage after the error."""

    def __init__(self, command: str, text: str, *, show_usage: bool) -> None:
        super().__init__(text)
        self.command = command
        self.show_usage = show_usage


class Console(NamedTuple):
    """Where the program writes: two file descriptors."""

    out: int = 1
    err: int = 2


class _Parsed(NamedTuple):
    command: str
    values: Values
    positional: list[str]


def main(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    cancellation: Cancellation,
    console: Console = Console(),
) -> int:
    """Carry out one command line; return the exit code."""
    try:
        return _dispatch(_parse(arguments, console), environ, cancellation, console)
    except _UsageError as error:
        path = f"runner {error.command}".rstrip()
        text = f"{path}: {error}\n"
        if error.show_usage:
            text += "\n" + usage(error.command)
        _write(console.err, text)
        return USAGE


def usage(command: str) -> str:
    """The synopsis and the flags of a command ("" for the program itself)."""
    text = _SYNOPSIS[command]
    if command == "run":
        text += "\nFlags:\n" + flags.usage(_own_flags(command))
    return text + "\nGlobal flags:\n" + flags.usage((*GLOBAL_FLAGS, HELP_FLAG))


def _flag_set(command: str) -> FlagSet:
    return FlagSet(GLOBAL_FLAGS, (HELP_FLAG,), _own_flags(command))


def _own_flags(command: str) -> tuple[Flag, ...]:
    if command != "run":
        return ()
    from runner.run_options import RUN_FLAGS

    return RUN_FLAGS


def _parse(arguments: Sequence[str], console: Console) -> _Parsed:
    """Find the command, then read the flags from left to right."""
    place = _command_place(arguments)
    command = arguments[place] if place >= 0 else ""
    if command not in _SYNOPSIS:
        command = ""
    accepted = _flag_set(command)
    values = accepted.defaults()
    try:
        if not command:
            rest = accepted.parse(arguments, values)
            return _Parsed(_known(rest), values, rest)
        _flag_set("").parse(arguments[:place], values)
        return _Parsed(command, values, accepted.parse(arguments[place + 1 :], values))
    except FlagError as error:
        if command == "run":
            _write_flags_failure(values, str(error), console)
        raise _UsageError(command, str(error), show_usage=command != "run") from None


def _known(rest: list[str]) -> str:
    """The empty command; raises FlagError when something else was meant."""
    if rest:
        raise FlagError(f"unknown command {rest[0]!r}")
    return ""


def _command_place(arguments: Sequence[str]) -> int:
    """Where the first argument stands that is neither a global flag nor its value; -1 if none."""
    known = _flag_set("")
    skip = False
    for place, argument in enumerate(arguments):
        if skip:
            skip = False
        elif argument == "--":
            return place + 1 if place + 1 < len(arguments) else -1
        elif argument.startswith("-") and argument != "-":
            skip = known.takes_next(argument)
        else:
            return place
    return -1


def _dispatch(
    parsed: _Parsed, environ: Mapping[str, str], cancellation: Cancellation, console: Console
) -> int:
    command, values, positional = parsed
    if command != "run" or values["help"] or values["version"] != "false":
        cancellation.release()  # nothing here takes long; a signal ends the program
    if values["help"]:
        _write(console.out, _ABOUT[command] + "\n" + usage(command))
        return OK
    asked = str(values["version"])
    if asked in ("true", "raw"):
        return _print_version(console, raw=asked == "raw")
    if not command:
        _write(console.err, usage(""))
        return USAGE
    try:
        logging = options.log_options(values)
    except options.LoggingFlagError as error:
        _refuse(command, values, f"logging flags: {error}", console)
    if command == "run":
        _check_run(values, positional, console)
        return _run(values, logging, environ, cancellation, console)
    if command == "copy":
        return _copy(positional, console)
    if positional:
        _refuse(command, values, f"unexpected arguments: {' '.join(positional)}", console)
    return _print_version(console, override=asked if asked.startswith("v") else "")


def _refuse(command: str, values: Values, text: str, console: Console) -> NoReturn:
    if command == "run":
        _write_flags_failure(values, text, console)
    raise _UsageError(command, text, show_usage=False)


def _print_version(console: Console, *, raw: bool = False, override: str = "") -> int:
    text = version.build_information(override) if raw else f"runner {version.reported(override)}"
    _write(console.out, text + "\n")
    return OK


def _copy(positional: list[str], console: Console) -> int:
    from runner.copy_command import CopyError, copy

    if len(positional) != 1:
        text = f"expected exactly one destination, got {len(positional)}"
        raise _UsageError("copy", text, show_usage=False)
    try:
        copy(positional[0])
    except CopyError as error:
        _write(console.err, f"runner copy: {error}\n")
        return FAILURE
    return OK


def _check_run(values: Values, positional: list[str], console: Console) -> None:
    from runner.wire import OPS

    if positional:
        _refuse("run", values, f"unexpected arguments: {' '.join(positional)}", console)
    if values["op"] not in OPS:
        given = f"unknown --op {values['op']!r}" if values["op"] else "--op is required"
        _refuse("run", values, f"{given}: use one of {', '.join(OPS)}", console)


def _run(
    values: Values,
    logging: options.LogOptions,
    environ: Mapping[str, str],
    cancellation: Cancellation,
    console: Console,
) -> int:
    from runner.execute import Supervisor
    from runner.log import Log
    from runner.run import Run
    from runner.run_options import run_options
    from runner.sinks import Sink

    out, err = Sink(console.out), Sink(console.err)
    log = Log(logging, out, err)
    with Supervisor(cancellation, log.flush_due, log.flush) as supervisor:
        out.attend = err.attend = supervisor.keep_deadlines
        try:
            return Run(run_options(values), environ, log, supervisor, out, err).execute()
        finally:
            log.flush()


def _write_flags_failure(values: Values, text: str, console: Console) -> None:
    """Leave a result that says the flags were bad, where `--result` was seen before."""
    from runner import wire
    from runner.result import Result
    from runner.run_options import result_path

    result = Result("")
    result.error = wire.Failure(wire.STEP, wire.FLAGS, text)
    path = result_path(values)
    try:
        result.write(path)
    except OSError as error:
        _write(console.err, f"runner run: cannot write {path}: {error.strerror}\n")


def _write(descriptor: int, text: str) -> None:
    data = memoryview(text.encode("utf-8", "surrogateescape"))
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        return  # nobody reads it
