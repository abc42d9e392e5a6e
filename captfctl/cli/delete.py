"""`captfctl delete`: delete described objects and wait until their infrastructure is destroyed."""

from typing import Annotated

import typer

from captfctl.cli.options import Data, Files, Images, Timeout
from captfctl.errors import InputError


def command(
    files: Files,
    local: Annotated[
        bool,
        typer.Option(
            "--local",
            help="Delete here, in the local control plane. Required: on a cluster use kubectl.",
        ),
    ] = False,
    data: Data = None,
    images: Images = None,
    timeout: Timeout = "1h",
) -> None:
    """Delete objects described in YAML files.

    Machines and pools go before clusters, each when its infrastructure is destroyed; then
    everything else, in the reverse of the order it is written in.

    \b
    Example:
      captfctl delete -f cluster.yaml --local
    """
    if not local:
        raise InputError(
            "say where to delete",
            do="--local deletes on this machine; on a cluster use kubectl delete -f",
        )
    from captfctl.cli.reconcile_local import delete_local

    raise typer.Exit(delete_local(files, data, images, timeout))
