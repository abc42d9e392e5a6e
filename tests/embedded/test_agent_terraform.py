"""A whole run on this machine: Job, pod, our runner, real Terraform, state in a Secret
(local-mode.md: The node agent).
"""

import gzip
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from captfctl.clock import SystemClock
from captfctl.embedded.agent import ApiAccess
from captfctl.embedded.agent.containers import Container
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.store import EmbeddedStore
from captfctl.embedded.supervisor import processes
from captfctl.model import keys
from captfctl.model.resource import Document
from captfctl.model.resources import JOBS, LEASES, PODS, SECRETS, SERVICE_ACCOUNTS
from tests.embedded.node_support import IMAGE, Plane, plane_in
from tests.embedded.support import NAMESPACE, conditions, create, exists, until

pytestmark = pytest.mark.terraform

SUFFIX = "0123456789abcdef-c"
STATE = f"tfstate-default-{SUFFIX}"
LOCK = f"lock-tfstate-default-{SUFFIX}"
ROOT = {
    "terraform": {"backend": {"kubernetes": {}}},
    "variable": {"seconds": {}},
    "module": {"role": {"source": "../../module", "seconds": "${var.seconds}"}},
    "output": {"host": {"value": "${module.role.host}", "sensitive": True}},
}
MODULE = """
variable "seconds" { type = number }
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "echo provisioning; sleep ${var.seconds}"
  }
}
resource "terraform_data" "host" {
  input      = "api.example.com"
  depends_on = [terraform_data.slow]
}
output "host" { value = terraform_data.host.output }
"""


@pytest.fixture(params=["token of the ServiceAccount", "shared token"])
def plane(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Plane]:
    with served(tmp_path, request.param == "shared token") as plane:
        yield plane


def served(base: Path, shared: bool) -> Any:
    from contextlib import contextmanager

    @contextmanager
    def both() -> Iterator[Plane]:
        store = EmbeddedStore.in_memory(SystemClock())
        api = ApiServer(store, data_dir=base / "api", clock=SystemClock())
        api.start()
        access = ApiAccess(
            server=api.url, ca_path=api.ca_path, token_path=api.token_path if shared else None
        )
        try:
            with plane_in(base, store=store, access=access, real=True) as plane:
                (base / "module" / "main.tf").write_text(MODULE)
                create(plane.door, SERVICE_ACCOUNTS, {"metadata": {"name": "captf-runner"}})
                yield plane
        finally:
            api.stop()

    return both()


@pytest.fixture
def shared_plane(tmp_path: Path) -> Iterator[Plane]:
    with served(tmp_path, True) as plane:
        yield plane


def run_job(plane: Plane, name: str, op: str, seconds: float = 0, *more: str) -> None:
    """The Job as the manager builds it (runs.md: The Job), then its per-run Secret."""
    made = create(plane.door, JOBS, job(name, op, *more))
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name,
        "uid": made["metadata"]["uid"],
    }
    create(
        plane.door,
        SECRETS,
        {
            "metadata": {"name": f"captf-run-{name}", "ownerReferences": [owner]},
            "stringData": {
                "main.tf.json": json.dumps(ROOT),
                "terraform.tfvars.json": json.dumps({"seconds": seconds}),
            },
        },
    )


def job(name: str, op: str, *more: str) -> Document:
    mounts = {
        "/captf/bin": "runner",
        "/captf/work": "work",
        "/tmp": "tmp",
        "/captf/config": "config",
    }
    init = {
        "name": "runner",
        "image": "example.com/manager:v1",
        "command": ["/runner", "copy", "/captf/bin/runner"],
        "volumeMounts": [{"name": "runner", "mountPath": "/captf/bin"}],
    }
    source = {
        "name": "source",
        "image": IMAGE,
        "command": ["/captf/bin/runner", "run"],
        "args": [
            f"--op={op}",
            "--bin=/captf/runtime",
            f"--image={IMAGE}",
            "--module=/captf/module",
            "--providers=/captf/providers",
            "--workdir=/captf/work",
            "--config=/captf/config",
            "--lock-timeout=20s",
            "--stop-timeout=20s",
            f"--backend-config=secret_suffix={SUFFIX}",
            f"--backend-config=namespace={NAMESPACE}",
            "--backend-config=in_cluster_config=true",
            '--backend-config=labels={"captf.io/managed"="true"}',
            *more,
        ],
        "env": [
            {"name": "TF_IN_AUTOMATION", "value": "1"},
            {"name": "TF_INPUT", "value": "0"},
            {"name": "HOME", "value": "/captf/work"},
            {"name": "TMPDIR", "value": "/tmp"},
            {"name": "KUBE_NAMESPACE", "value": NAMESPACE},
            {"name": "CHECKPOINT_DISABLE", "value": "1"},
        ],
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"name": v, "mountPath": p} for p, v in mounts.items()],
    }
    pod = {
        "restartPolicy": "Never",
        "serviceAccountName": "captf-runner",
        "terminationGracePeriodSeconds": 30,
        "initContainers": [init],
        "containers": [source],
        "volumes": [
            {"name": "runner", "emptyDir": {}},
            {"name": "work", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "config", "secret": {"secretName": f"captf-run-{name}", "defaultMode": 288}},
        ],
    }
    return {
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


def pod_of(plane: Plane, job: str) -> str:
    found = until(lambda: plane.door.list(PODS, NAMESPACE, labels=f"{keys.JOB_NAME}={job}").items)
    return found[0].metadata.name


def state(plane: Plane) -> Document:
    body = plane.door.get(SECRETS, STATE, NAMESPACE).data["tfstate"]
    return json.loads(gzip.decompress(body))


def lock(plane: Plane) -> dict[str, str]:
    """Who holds the state lock; empty when it is free."""
    if not exists(plane.door, LEASES, LOCK):
        return {}
    lease = plane.door.get(LEASES, LOCK, NAMESPACE)
    if not lease.spec.holder_identity:
        return {}
    return json.loads(lease.metadata.annotations[keys.LOCK_INFO])


def end(plane: Plane, name: str) -> Document:
    """The runner's result."""
    return json.loads(plane.terminated(pod_of(plane, name)).message)


def test_apply_and_destroy_with_the_state_in_the_embedded_api(plane: Plane) -> None:
    run_job(plane, "up", "apply")
    until(lambda: conditions(plane.door, "up"))
    assert "Complete" in conditions(plane.door, "up"), plane.log(pod_of(plane, "up"))
    result = end(plane, "up")
    assert [step["name"] for step in result["steps"]] == ["init", "validate", "apply"]
    assert result["error"] is None
    assert state(plane)["outputs"]["host"]["value"] == "api.example.com"
    assert lock(plane) == {}
    run_job(plane, "down", "destroy")
    until(lambda: conditions(plane.door, "down"))
    assert "Complete" in conditions(plane.door, "down"), plane.log(pod_of(plane, "down"))
    assert state(plane)["resources"] == []


def applying(plane: Plane) -> str:
    """A pod in the middle of an apply."""
    run_job(plane, "up", "apply", 300)
    name = pod_of(plane, "up")
    plane.wait_log(name, "provisioning")
    return name


def test_the_lock_names_the_pod_and_an_interrupted_run_gives_it_back(shared_plane: Plane) -> None:
    plane = shared_plane
    name = applying(plane)
    by = plane.pod(name).metadata.annotations["captf.io/hostname-by"]
    if by != "lock-attribution":
        assert lock(plane)["Who"].rpartition("@")[2] == name
    plane.door.patch(PODS, name, NAMESPACE, {"metadata": {"finalizers": ["example.com/keep"]}})
    plane.door.delete(PODS, name, NAMESPACE)
    plane.wait_phase(name, "Failed")
    result = json.loads(plane.terminated(name).message)
    assert result["error"]["kind"] == "interrupted"
    assert lock(plane) == {}
    plane.door.patch(PODS, name, NAMESPACE, {"metadata": {"finalizers": None}})


def test_a_killed_runner_leaves_a_lock_that_names_its_dead_pod(shared_plane: Plane) -> None:
    plane = shared_plane
    name = applying(plane)
    running = Container(plane.directory(name) / "containers" / "source", "x").running
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    plane.wait_phase(name, "Failed")
    assert plane.processes(name) == []
    info = lock(plane)
    assert info["Who"].rpartition("@")[2] == name
    run_job(plane, "again", "apply", 0, f"--force-unlock={info['ID']}")
    until(lambda: conditions(plane.door, "again"))
    assert "Complete" in conditions(plane.door, "again"), plane.log(pod_of(plane, "again"))


def applies(pid: int) -> bool:
    """Whether it is Terraform that applies; other processes of the run may end meanwhile."""
    home = Path(f"/proc/{pid}")
    try:
        words = (home / "cmdline").read_bytes().split(b"\0")
        return b"apply" in words and (home / "comm").read_text().strip() == "terraform"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_killed_terraform_is_a_failed_step_and_the_runner_says_so(shared_plane: Plane) -> None:
    plane = shared_plane
    name = applying(plane)
    [terraform] = [process for process in plane.processes(name) if applies(process.pid)]
    processes.send(terraform, signal.SIGKILL)
    plane.wait_phase(name, "Failed")
    result = json.loads(plane.terminated(name).message)
    assert (result["error"]["kind"], result["error"]["step"]) == ("step", "apply")
    assert plane.processes(name) == []


def test_without_a_namespace_for_host_names_the_lock_is_attributed_to_the_dead_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from captfctl.embedded.agent import agent as agent_module
    from captfctl.embedded.agent import lock_attribution
    from captfctl.embedded.supervisor.isolation import HostnameBy

    monkeypatch.setattr(agent_module, "hostname_way", lambda: HostnameBy.LOCK_ATTRIBUTION)
    # Other tests of this machine run Terraform too.
    monkeypatch.setattr(lock_attribution, "_other_runtime_lives", lambda: False)
    with served(tmp_path, True) as plane:
        name = applying(plane)
        pod = plane.pod(name)
        assert pod.metadata.annotations["captf.io/hostname-by"] == "lock-attribution"
        assert lock(plane)["Who"].rpartition("@")[2] == os.uname().nodename
        running = Container(plane.directory(name) / "containers" / "source", "x").running
        assert running is not None
        os.kill(running.pid, signal.SIGKILL)
        plane.wait_phase(name, "Failed")
        assert lock(plane)["Who"].rpartition("@")[2] == name
