"""The rehearsal runtime: a run from end to end on machines without terraform and tofu."""

import gzip
import json
import sys

import pytest

from tests.runner.harness import REPOSITORY, Job, Started, wait_until

REHEARSAL = REPOSITORY / "tests" / "tools" / "rehearsal_runtime.py"
MODULE = """
resource "terraform_data" "network" {
  input = 1
}
resource "terraform_data" "load_balancer" {}
"""
ROOT = {
    "module": {"role": {"source": "../../module"}},
    "output": {"control_plane_endpoint": {}, "other": {}},
}


@pytest.fixture
def cluster(tmp_path):
    """An API server, and the door to what it stores."""
    from captfctl.clock import SystemClock
    from captfctl.embedded.apiserver import ApiServer
    from captfctl.embedded.store import EmbeddedStore

    (tmp_path / "api").mkdir()
    store = EmbeddedStore.in_memory(SystemClock())
    server = ApiServer(store, data_dir=tmp_path / "api", clock=SystemClock())
    server.start()
    config = {
        "clusters": [
            {"cluster": {"server": server.url, "certificate-authority": str(server.ca_path)}}
        ],
        "users": [{"user": {"token": server.token}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    yield store.door()
    server.stop()


def _flags(job: Job, *more: str) -> list[str]:
    given = [flag for flag in job.flags() if not flag.startswith("--bin")]
    backend = [f"config_path={job.path / 'kubeconfig'}", "secret_suffix=x", 'labels={"a"="b"}']
    backend += ["namespace=default"]
    runtime = [f"--bin={sys.executable}", f"--bin={REHEARSAL}"]
    return [*given, *runtime, *(f"--backend-config={text}" for text in backend), *more]


def _prepare(job: Job, **variables: object) -> None:
    (job.module / "main.tf").write_text(MODULE)
    (job.config / "main.tf.json").write_text(json.dumps(ROOT))
    values = {"captf_cluster": {"name": "demo"}, "seconds": 0, **variables}
    (job.config / "terraform.tfvars.json").write_text(json.dumps(values))


def _run(job: Job, *more: str):
    return job.run_arguments(_flags(job, *more))


def _state(cluster) -> dict:
    from captfctl.model.resources import SECRETS

    secret = cluster.get(SECRETS, "tfstate-default-x", "default")
    assert secret.metadata.labels["a"] == "b"
    return json.loads(gzip.decompress(secret.data["tfstate"]))


def test_every_operation_can_be_rehearsed(job: Job, cluster):
    _prepare(job)
    applied = _run(job, "--op=apply", "--guard-deletes")
    assert applied.exit == 0, applied.err
    assert applied.document["changes"] == {"add": 2, "change": 0, "destroy": 0}
    assert applied.document["runtime"]["version"].endswith("rehearsal")
    outputs = _state(cluster)["outputs"]
    assert outputs["control_plane_endpoint"]["value"]["host"] == "demo-rehearsal.example.com"
    assert outputs["other"]["value"] is None
    printed = [line for line in applied.out.splitlines() if not line.startswith('{"rehearsal"')]
    assert printed and all("REHEARSAL" in line for line in printed)

    assert _run(job, "--op=apply", "--guard-deletes").steps[-1] == "plan"
    _prepare(job, subnets=3)
    assert _run(job, "--op=plan").document["plan"]["update"] == 2
    assert _run(job, "--op=drift").document["drift"]["update"] == 2
    assert _run(job, "--op=apply").document["changes"]["change"] == 2
    assert _run(job, "--op=refresh").exit == 0

    (job.config / "restore").mkdir()
    (job.config / "restore" / "0").write_bytes(gzip.compress(json.dumps(_state(cluster)).encode()))
    restored = _run(job, "--op=restore", "--restore-chunks=1", "--restore-resources=2")
    assert restored.exit == 0, restored.err

    destroyed = _run(job, "--op=destroy")
    assert destroyed.document["changes"] == {"add": 0, "change": 0, "destroy": 2}
    assert _state(cluster)["resources"] == []


def test_an_interrupted_rehearsal_keeps_its_state_and_frees_its_lock(job: Job, cluster):
    from captfctl.model.resources import LEASES

    _prepare(job, seconds=60)
    started = Started(job, _flags(job, "--op=apply"), job.environ)

    def locked() -> bool:
        return any(lease.spec.holder_identity for lease in cluster.list(LEASES, "default").items)

    wait_until(lambda: "acting as" in (job.path / "stdout").read_text(), "the apply")
    assert locked()
    started.signal()
    outcome = started.end()
    assert outcome.error["kind"] == "interrupted"
    assert not locked()
    assert _state(cluster)["resources"] == []
