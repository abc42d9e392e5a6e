"""`captfctl manifests`: everything that installs captfctl on a cluster, as YAML."""

import re
import sys
from typing import Annotated

import typer

from captfctl.errors import InputError

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def command(
    image: Annotated[
        str, typer.Option("--image", metavar="REF", help="Image of the manager, with the runner.")
    ],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Where the manager runs.")
    ] = "captf-system",
    replicas: Annotated[
        int, typer.Option("--replicas", metavar="N", min=1, help="How many managers.")
    ] = 2,
    watch_namespace: Annotated[
        str,
        typer.Option(
            "--watch-namespace", metavar="NAME", help="Reconcile one namespace's objects only."
        ),
    ] = "",
    flag: Annotated[
        list[str] | None,
        typer.Option(
            "--flag", metavar="FLAG", help="Further flag of `captfctl manage`. Repeatable."
        ),
    ] = None,
) -> None:
    """Print the YAML that installs captfctl on a cluster.

    \b
    Example:
      captfctl manifests --image registry.example.com/captfctl:v0.1.0 |
        kubectl apply --server-side -f -
    """
    from captfctl.install.manifests import manifests
    from captfctl.install.workload import InstallOptions
    from captfctl.kubeyaml import to_yaml

    for option, value in (("--namespace", namespace), ("--watch-namespace", watch_namespace)):
        if value and not _DNS_LABEL.fullmatch(value):
            raise InputError(
                f"{option} is not a namespace's name",
                why=f"{value!r} is not a DNS label",
                do="use lower-case letters, digits and dashes",
            )
    options = InstallOptions(
        image=image,
        namespace=namespace,
        replicas=replicas,
        watch_namespace=watch_namespace,
        flags=tuple(flag or ()),
    )
    sys.stdout.write("---\n".join(to_yaml(document) for document in manifests(options)))
