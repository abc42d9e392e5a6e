"""The command tree."""

import os
from importlib import import_module
from typing import Annotated

import typer

from captfctl.cli.kubernetes_flags import KubernetesCommand
from captfctl.version import VERSION

COMPLETE = "_CAPTFCTL_COMPLETE"

# Each is a module of this package.
_COMMANDS = ("reconcile", "delete", "restore", "get", "approve", "manage", "manifests", "local")


def command_line(arguments: list[str]) -> typer.Typer:
    """The tree, with all commands or with the one that `arguments` name.

    typer makes a validator of each flag of each command in the tree: a fifth of the time of a
    command that reads one object.
    """
    app = typer.Typer(
        name="captfctl",
        help="Terraform and OpenTofu runs that nobody has to babysit.",
        no_args_is_help=True,
        # Shells ask through this variable (completions/); the options to install them are not
        # needed.
        add_completion=COMPLETE in os.environ,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in [name for name in _COMMANDS if name in arguments[:1]] or _COMMANDS:
        module = import_module(f"captfctl.cli.{name}")
        if name == "local":
            app.add_typer(module.app, name=name)
        else:
            app.command(name, cls=KubernetesCommand if name == "manage" else None)(module.command)
    app.command("version")(_print_version)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        _print_version()
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Terraform and OpenTofu runs that nobody has to babysit."""


def _print_version() -> None:
    """Print the version."""
    typer.echo(f"captfctl {VERSION}")
