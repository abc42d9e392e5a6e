"""`captfctl approve`: approve a plan that waits for a person."""

from typing import Annotated

import typer

from captfctl.cli.options import Data, FilesToLookAt, Kubeconfig, TextOrJson, Yes
from captfctl.cli.output import TextFormat
from captfctl.errors import InputError


def command(
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="The plan's name.", show_default=False)
    ] = "",
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="KIND/NAME",
            help="In place of a plan: the current one of this cluster or pool.",
        ),
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Where the plan is.")
    ] = "default",
    expect_hash: Annotated[
        str,
        typer.Option("--expect-hash", metavar="HASH", help="Refuse a plan with another hash."),
    ] = "",
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="USER", help="Refuse unless this is you; with -f: who would approve."
        ),
    ] = "",
    yes: Yes = False,
    allow_destructive: Annotated[
        bool,
        typer.Option(
            "--allow-destructive", help="Approve also what deletes or replaces resources."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and show the plan. Approves nothing.")
    ] = False,
    files: FilesToLookAt = None,
    data: Data = None,
    kubeconfig: Kubeconfig = None,
    output: TextOrJson = TextFormat.TEXT,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", "--revoke", "--undo", "--unapprove", hidden=True)
    ] = False,
) -> None:
    """Approve a plan: what it lists is applied then, and nothing else.

    The plan is shown first. One that deletes or replaces something has to be confirmed with its
    name, or with --allow-destructive. Without --kubeconfig it is a plan of the local control plane,
    whether that runs or not.

    \b
    Examples:
      captfctl approve web-911bde90b1 -n prod --kubeconfig ~/.kube/config
      captfctl approve --target terraformcluster/web --dry-run
    """
    if withdraw:
        raise InputError(
            "an approval cannot be withdrawn",
            do="change the inputs, which supersedes the plan, or pause the object before the "
            "apply begins",
        )
    from captfctl.cli.approve_plan import Asked, approve_plan

    asked = Asked(
        plan=plan,
        target=target,
        namespace=namespace,
        expect_hash=expect_hash,
        by=by,
        yes=yes,
        allow_destructive=allow_destructive,
        dry_run=dry_run,
        files=files or [],
    )
    approve_plan(asked, data, kubeconfig, as_json=output is TextFormat.JSON)
