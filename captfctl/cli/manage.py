"""`captfctl manage`: the controller process."""

from typing import Annotated, Any

import typer

from captfctl.cli.options import Kubeconfig, Verbosity
from captfctl.cli.settings_options import given_settings, with_flags_of
from captfctl.settings import ManagerSettings


@with_flags_of(ManagerSettings)
def command(
    kubeconfig: Kubeconfig = None,
    *,
    logging_format: Annotated[
        str,
        typer.Option("--logging-format", metavar="FORMAT", help="Form of the log: text or json."),
    ] = "text",
    verbosity: Verbosity = 2,
    **flags: Any,
) -> None:
    """Run the controller against an API server until SIGTERM.

    Finds the API server by --kubeconfig, then $KUBECONFIG, then the pod's ServiceAccount.
    """
    from captfctl.cli.run_manager import manager_identity, own_namespace, run_manager

    settings = ManagerSettings(
        **given_settings(ManagerSettings, flags),
        lease_namespace=own_namespace(),
        identity=manager_identity(),
    )
    raise typer.Exit(run_manager(settings, kubeconfig, logging_format, verbosity))
