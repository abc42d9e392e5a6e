"""Options that several commands share: one spelling, one help text."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from captfctl.cli.output import Format, TextFormat
from captfctl.errors import InputError

_FILES = typer.Option(
    "--filename",
    "-f",
    metavar="PATH",
    help="YAML file, directory of them, or - for standard input. Repeatable.",
)
Files = Annotated[list[str], _FILES]
FilesIfAny = Annotated[list[str] | None, _FILES]
FilesToLookAt = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="PATH",
        help="Look at YAML files, which stay as they are, not at a control plane. Repeatable.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Where the local control plane keeps everything.",
        show_default="$XDG_STATE_HOME/captfctl/local",
    ),
]
Images = Annotated[
    Path | None,
    typer.Option(
        "--images",
        metavar="FILE",
        envvar="CAPTFCTL_IMAGES",
        help="Table of images: which directory stands for which image reference.",
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", metavar="FILE", help="Kubeconfig of the API server to talk to."),
]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print.")]
NamespaceOfName = Annotated[
    str,
    typer.Option("--namespace", "-n", metavar="NAME", help="The namespace of KIND/NAME."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; required without a terminal.")]
TextOrJson = Annotated[TextFormat, typer.Option("--output", "-o", help="Output format.")]
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="DURATION", help="Give up after this long, such as 10m.")
]
Verbosity = Annotated[
    int,
    typer.Option(
        "-v",
        "--v",
        metavar="N",
        min=0,
        help="How much to log: 0 problems, 1 to 3 what is done, 4 every detail.",
    ),
]


def data_dir(given: Path | None) -> Path:
    """The directory of the local control plane: as given, else the user's state directory."""
    if given is not None:
        return given.expanduser().absolute()
    import os

    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "captfctl" / "local"


def check_files_alone(data: Path | None, kubeconfig: Path | None) -> None:
    """Raises `InputError` when -f, which reads files only, is given with a control plane."""
    if data is not None or kubeconfig is not None:
        raise InputError("-f reads files only", do="leave out -f, or both --data and --kubeconfig")


def duration(text: str, flag: str) -> timedelta:
    """The Go duration given for `flag`. Raises `InputError` naming the flag."""
    from captfctl.model.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise InputError(
            f"{flag} cannot be used", why=str(error), do="write it like 90s, 10m or 1h30m"
        ) from None


def timeout_seconds(text: str) -> float:
    """What is given for `--timeout`. Raises `InputError` when it cannot be used."""
    length = duration(text, "--timeout").total_seconds()
    if length < 0:
        raise InputError(
            "--timeout cannot be used", why=f"{text!r} is negative", do="write it like 90s or 10m"
        )
    return length
