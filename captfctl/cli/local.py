"""`captfctl local`: a whole control plane on this machine, or its node agent alone."""

from typing import Annotated

import typer

from captfctl.cli.options import Data, Images, Kubeconfig

app = typer.Typer(
    help="A control plane on this machine: no cluster, no containers.", no_args_is_help=True
)


@app.command("up")
def up(
    data: Data = None,
    images: Images = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--filename", "-f", metavar="PATH", help="Objects to put in at the start."),
    ] = None,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="Port of the API; 0: as last time, or free."),
    ] = 0,
    verbosity: Annotated[int, typer.Option("-v", "--v", min=0, help="How much to log.")] = 0,
) -> None:
    """Run the control plane, the node agent and the manager until Ctrl-C.

    Everything is kept in --data: started again, it goes on where it was.
    """
    from captfctl.cli.local_up import local_up

    raise typer.Exit(local_up(data, images, files or [], port, verbosity))


@app.command("node")
def node(
    images: Images = None,
    data: Data = None,
    kubeconfig: Kubeconfig = None,
    name: Annotated[str, typer.Option("--name", help="The node's name.")] = "local",
    verbosity: Annotated[int, typer.Option("-v", "--v", min=0, help="How much to log.")] = 0,
) -> None:
    """Run the node agent alone, as a node of the API server that the kubeconfig names.

    Pods that are bound to the node become processes of this machine.
    """
    from captfctl.cli.local_node import local_node

    raise typer.Exit(local_node(images, data, kubeconfig, name, verbosity))
