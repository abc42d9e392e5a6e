"""`captfctl local`: a whole control plane on this machine, or its node agent alone."""

from typing import Annotated

import typer

from captfctl.cli.options import Data, Images, Kubeconfig, Verbosity

app = typer.Typer(
    help="Run a control plane on this machine, without containers.", no_args_is_help=True
)


@app.command("up")
def up(
    data: Data = None,
    images: Images = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="PATH",
            help="Objects to put in at the start: YAML file, directory, or -. Repeatable.",
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            metavar="PORT",
            min=0,
            max=65535,
            help="Port of the API; 0: as last time, or a free one.",
        ),
    ] = 0,
    verbosity: Verbosity = 0,
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
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The node's name.")] = "local",
    verbosity: Verbosity = 0,
) -> None:
    """Run the node agent alone, as a node of any API server.

    Pods that are bound to the node become processes of this machine. They go on when the agent
    ends, and the next one adopts them.
    """
    from captfctl.cli.local_node import local_node

    raise typer.Exit(local_node(images, data, kubeconfig, name, verbosity))
