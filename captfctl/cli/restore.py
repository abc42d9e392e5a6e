"""`captfctl restore`: ask for an earlier state of an object to be put back."""

from typing import Annotated

import typer

from captfctl.cli.options import (
    Data,
    FilesToLookAt,
    Kubeconfig,
    NamespaceOfName,
    TextOrJson,
    Yes,
)
from captfctl.cli.output import TextFormat


def command(
    name: Annotated[str, typer.Argument(metavar="KIND/NAME", help="The object.")],
    namespace: NamespaceOfName = "",
    list_backups: Annotated[
        bool, typer.Option("--list", help="Show the backups, and what each would forget.")
    ] = False,
    serial: Annotated[
        str, typer.Option("--serial", metavar="N", help="Restore the backup of this serial.")
    ] = "",
    latest: Annotated[
        bool, typer.Option("--latest", help="Restore the newest complete backup.")
    ] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Take back what is asked for. Stops no Job.")
    ] = False,
    allow_lineage_change: Annotated[
        bool,
        typer.Option(
            "--allow-lineage-change", help="Also a backup of another lineage than the state's."
        ),
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="In place of another serial that is asked for.")
    ] = False,
    yes: Yes = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and show what would happen. Asks for nothing.")
    ] = False,
    files: FilesToLookAt = None,
    data: Data = None,
    kubeconfig: Kubeconfig = None,
    output: TextOrJson = TextFormat.TEXT,
) -> None:
    """Put an earlier state of an object back.

    The backup is checked and shown, with the resources that nothing manages any more afterwards;
    then the object's name has to be typed, or --yes given. The controller makes the restore.
    Without --kubeconfig the object is in the local control plane, whether that runs or not.

    \b
    Examples:
      captfctl restore terraformcluster/prod --list
      captfctl restore terraformcluster/prod --serial 12 -n team-a --kubeconfig admin.conf
      captfctl restore terraformcluster/prod --latest --dry-run
    """
    from captfctl.cli.restore_objects import Asked, restore

    asked = Asked(
        name=name,
        namespace=namespace,
        list_backups=list_backups,
        serial=serial,
        latest=latest,
        cancel=cancel,
        allow_lineage_change=allow_lineage_change,
        replace=replace,
        yes=yes,
        dry_run=dry_run,
        files=files or [],
    )
    restore(asked, data, kubeconfig, as_json=output is TextFormat.JSON)
