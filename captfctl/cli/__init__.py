"""The command line: one module per command.

Start-up imports typer and the thin module of the command that is named; a command imports what it
runs with when it runs.
"""

import gc
import os
import sys
from typing import NoReturn

from captfctl.errors import CaptfError


def main() -> None:
    """The console script `captfctl`. Ends the process with an exit code of docs/exit-codes.md."""
    _open_closed_streams()
    if sys.argv[1:] in (["--version"], ["version"]):
        from captfctl.version import VERSION

        print(f"captfctl {VERSION}")
        return
    # What is loaded at the start is no garbage, and neither are ten thousand objects of an answer.
    gc.set_threshold(100_000)
    from captfctl.cli.app import command_line
    from captfctl.cli.failures import report

    try:
        command_line(sys.argv[1:])()
    except CaptfError as error:
        report(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        from captfctl.cli.failures import report_defect

        if isinstance(error, BrokenPipeError):
            _reader_went_away()
        report_defect(error)
        sys.exit(1)


def _open_closed_streams() -> None:
    """What was closed for the process, as by `<&-`, has nothing to read and takes what is written.

    In this order, so that each gets its own number, which a file would otherwise have next.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _reader_went_away() -> NoReturn:
    """`captfctl get | head`: not a failure, and nothing more can be said."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)
