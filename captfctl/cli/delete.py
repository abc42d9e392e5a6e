"""`captfctl delete`: say what is lost, ask, delete, and wait until the infrastructure is gone."""

from typing import Annotated

import typer

from captfctl.cli.options import (
    Data,
    FilesIfAny,
    Images,
    Kubeconfig,
    NamespaceOfName,
    TextOrJson,
    Timeout,
    Yes,
)
from captfctl.cli.output import TextFormat


def command(
    name: Annotated[
        str, typer.Argument(metavar="[KIND/NAME]", help="One object, instead of files.")
    ] = "",
    files: FilesIfAny = None,
    namespace: NamespaceOfName = "",
    local: Annotated[
        bool,
        typer.Option("--local", help="Delete here, in the local control plane."),
    ] = False,
    kubeconfig: Kubeconfig = None,
    data: Data = None,
    images: Images = None,
    yes: Yes = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be destroyed or forgotten.")
    ] = False,
    output: TextOrJson = TextFormat.TEXT,
    timeout: Timeout = "1h",
) -> None:
    """Delete objects, after saying which resources that destroys.

    What would be destroyed or forgotten is read from the stored states. Then the object's name has
    to be typed, or --yes given.

    Objects from files are deleted in the local control plane: machines and pools before clusters,
    each when its infrastructure is destroyed; then everything else, in the reverse of the order it
    is written in. With --dry-run alone the states are read from the files, too.

    KIND/NAME is deleted in the local control plane, or in the cluster of --kubeconfig. A Cluster
    takes its machines and pools along.

    \b
    Examples:
      captfctl delete -f cluster.yaml --local
      captfctl delete cluster/prod --dry-run
      captfctl delete terraformmachine/prod-md-0-x7k2p -n team-a --kubeconfig admin.conf
    """
    from captfctl.cli.delete_objects import Wish, delete

    wish = Wish(
        name=name,
        files=files or [],
        namespace=namespace,
        local=local,
        kubeconfig=kubeconfig,
        data=data,
        images=images,
        yes=yes,
        dry_run=dry_run,
        output=output,
        timeout=timeout,
    )
    raise typer.Exit(delete(wish))
