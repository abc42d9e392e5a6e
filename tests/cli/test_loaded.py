"""What a command loads before it answers: a person at a terminal waits for it each time."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from captfctl.clock import SystemClock
from captfctl.embedded.apiserver import ApiServer
from captfctl.model.kinds import CLUSTER
from captfctl.model.owner import Owner
from tests.approvals.plans import NAMESPACE, a_site
from tests.support.states import put_backup, put_state

PROGRAM = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
sys.argv[0] = "captfctl"
from captfctl.cli import main
main()
"""
FOR_TERMINALS = ("rich",)
FOR_OTHERS = (
    "captfctl.embedded.apiserver",
    "captfctl.embedded.store",
    "captfctl.manager",
    "celpy",
    "cryptography",
    "git",
    "kubernetes",
    "prometheus_client",
    "python_socks",
    "re2",
    "requests",
    "sqlite3",
    "starlette",
    "uvicorn",
)
"""What the embedded control plane, the manager and rarer configurations run with."""


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a server with a TerraformCluster that has a state, a backup and a plan."""
    with a_site() as site:
        target = site.target()
        owner = Owner(CLUSTER.name, NAMESPACE, "web", target["metadata"]["uid"])
        put_state(site.manager, owner, 2, ["aws_vpc.main", "aws_subnet.a"])
        put_backup(site.manager, owner, 1, ["aws_vpc.main"])
        site.plan(target)
        place = tmp_path_factory.mktemp("plane")
        server = ApiServer(site.store, data_dir=place, clock=SystemClock())
        server.start()
        yield server.kubeconfig_path
        server.stop()


def _loaded(kubeconfig: Path, *arguments: str) -> tuple[str, set[str]]:
    """What a command prints into a pipe, and the modules it has when it ends."""
    command = [sys.executable, "-c", PROGRAM, *arguments, f"--kubeconfig={kubeconfig}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return ended.stdout, set(json.loads(ended.stderr))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("approve --target tfc/web --dry-run", "terraformplan/web-0 can be approved"),
        ("restore tfc/web --list", "state of serial 2, 2 resources"),
        ("restore tfc/web --latest --dry-run", "goes back to the backup of serial 1"),
        ("delete tfc/web --dry-run", "2 resources will be destroyed"),
    ],
    ids=lambda text: " ".join(text.split()[::2]),
)
def test_a_command_that_is_piped_loads_nothing_but_what_it_needs(
    kubeconfig: Path, command: str, said: str
):
    printed, modules = _loaded(kubeconfig, *command.split())

    assert said in printed
    assert not modules.intersection((*FOR_TERMINALS, *FOR_OTHERS))
