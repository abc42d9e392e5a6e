"""`captfctl reconcile`: bring described objects to where they should be, once."""

from typing import Annotated

import typer

from captfctl.cli.options import Data, Files, Images, Timeout
from captfctl.cli.output import Format
from captfctl.errors import InputError


def command(
    files: Files,
    local: Annotated[
        bool,
        typer.Option("--local", help="Run here, in the local control plane, until all is settled."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done. Starts nothing.")
    ] = False,
    data: Data = None,
    images: Images = None,
    timeout: Timeout = "1h",
    output: Annotated[
        Format, typer.Option("--output", "-o", help="How --dry-run prints.")
    ] = Format.TABLE,
) -> None:
    """Reconcile objects described in YAML files.

    With --dry-run the files may also hold Jobs, Secrets with state and Leases: what is absent from
    them does not exist. Give it --images, too, to have the variables compared with what the modules
    declare.

    \b
    Examples:
      captfctl reconcile -f cluster.yaml --dry-run
      captfctl reconcile -f cluster.yaml --local --images images.yaml
    """
    if local == dry_run:
        raise InputError(
            "say where to reconcile",
            do="--local runs it on this machine, --dry-run only says what would be done",
        )
    if dry_run:
        from captfctl.cli.dry_run import dry_run as run_dry

        run_dry(files, images, output)
    else:
        from captfctl.cli.reconcile_local import reconcile_local

        raise typer.Exit(reconcile_local(files, data, images, timeout))
