"""The command tree."""

import os
from typing import Annotated

import typer

from captfctl.cli import approve, delete, get, local, manage, manifests, reconcile, restore
from captfctl.cli.kubernetes_flags import KubernetesCommand
from captfctl.version import VERSION

COMPLETE = "_CAPTFCTL_COMPLETE"

app = typer.Typer(
    name="captfctl",
    help="Terraform and OpenTofu runs that nobody has to babysit.",
    no_args_is_help=True,
    # Shells ask through this variable (completions/); the options to install them are not needed.
    add_completion=COMPLETE in os.environ,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"captfctl {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Terraform and OpenTofu runs that nobody has to babysit."""


app.command("reconcile")(reconcile.command)
app.command("delete")(delete.command)
app.command("restore")(restore.command)
app.command("get")(get.command)
app.command("approve")(approve.command)
app.command("manage", cls=KubernetesCommand)(manage.command)
app.command("manifests")(manifests.command)
app.add_typer(local.app, name="local")


@app.command("version")
def _print_version() -> None:
    """Print the version."""
    typer.echo(f"captfctl {VERSION}")
