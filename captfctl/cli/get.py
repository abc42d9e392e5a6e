"""`captfctl get`: the objects and how they stand, with the columns that kubectl shows."""

from typing import Annotated

import typer

from captfctl.cli.options import Data, Kubeconfig, Output
from captfctl.cli.output import Format


def command(
    kind: Annotated[
        str, typer.Argument(metavar="KIND[,KIND]", help="Kinds: singular, plural or short names.")
    ] = "terraformclusters",
    name: Annotated[str, typer.Argument(metavar="NAME", help="One object of that kind.")] = "",
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NAME", help="Only this namespace's objects."),
    ] = "",
    selector: Annotated[
        str,
        typer.Option(
            "--selector", "-l", metavar="SELECTOR", help="Label selector, such as a=b,c!=d."
        ),
    ] = "",
    data: Data = None,
    kubeconfig: Kubeconfig = None,
    output: Output = Format.TABLE,
) -> None:
    """List objects, or show one.

    Without --kubeconfig the local control plane is read, whether it runs or not.

    \b
    Examples:
      captfctl get
      captfctl get jobs,secrets -n default
      captfctl get terraformcluster quickstart -o yaml
    """
    from captfctl.cli.get_objects import Query, get

    query = Query(kinds=kind, name=name, namespace=namespace, selector=selector)
    get(query, data, kubeconfig, output)
