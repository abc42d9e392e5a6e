"""`make cluster`: a real control plane with captfctl in it, to try things on until Ctrl-C.

Kubernetes and Cluster API as processes of this machine, the installation of `captfctl manifests`,
the manager with the token of its own ServiceAccount, and the node agent as the only node.
"""

import argparse
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from captfctl.cli.signals import end_requested
from tests.controlplane.assets import CLUSTER, AssetsMissingError, build
from tests.controlplane.processes import StartError
from tests.e2e.site import CAPTFCTL
from tests.kubernetes.site import MANAGER_ENVIRONMENT, Cluster

_LOOK_SECONDS = 1.0


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0 after Ctrl-C, 1 when it does not start or a part of it ended by itself."""
    parser = argparse.ArgumentParser(prog="make cluster", description=__doc__)
    parser.add_argument(
        "--images", type=Path, metavar="FILE", help="image table; default: the quick start's image"
    )
    parser.add_argument(
        "--without-manager",
        action="store_true",
        help="start no manager, and print the command that starts one",
    )
    options = parser.parse_args(arguments)
    ending = end_requested()
    try:
        assets = build(CLUSTER)
        with tempfile.TemporaryDirectory(prefix="captfctl-cluster-") as folder:
            cluster = Cluster(Path(folder), assets, options.images)
            print("starting, in less than a minute", file=sys.stderr, flush=True)
            cluster.start(manager=not options.without_manager)
            try:
                print("\n".join(_told(cluster, manager=not options.without_manager)), flush=True)
                while not ending.wait(_LOOK_SECONDS):
                    if ended := cluster.ended():
                        print(f"{ended} ended by itself", file=sys.stderr)
                        return 1
            finally:
                print("ending", file=sys.stderr, flush=True)
                cluster.stop()
    except (AssetsMissingError, StartError, AssertionError) as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 1
    return 0


def _told(cluster: Cluster, *, manager: bool) -> Iterator[str]:
    yield f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}"
    yield ""
    yield f"image table: {cluster.images} (new rows count at once)"
    yield f"logs:        {cluster.folder}/*.log, {cluster.plane.folder}/*.log"
    if not manager:
        environment = [f"{name}={value}" for name, value in MANAGER_ENVIRONMENT.items()]
        command = [*environment, str(CAPTFCTL), *cluster.manager_arguments()]
        yield f"manager:     {shlex.join(command)}"
    yield "Ctrl-C ends the cluster and removes all of it."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
