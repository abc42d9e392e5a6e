"""Terraform's own `kubernetes` backend against the embedded API server."""

import base64
import gzip
import json
import os
import subprocess

import pytest

from tests.apiserver.conftest import Api
from tests.support.binaries import NEEDS_TERRAFORM

pytestmark = [
    pytest.mark.terraform,
    NEEDS_TERRAFORM,
]

MODULE = """
terraform {
  backend "kubernetes" {
    secret_suffix     = "demo"
    namespace         = "NAMESPACE"
    labels            = { "captf.io/owner" = "demo" }
  }
}
variable "input" { type = string }
resource "terraform_data" "it" { input = var.input }
output "it" { value = terraform_data.it.output }
"""


class Terraform:
    def __init__(self, api: Api, namespace: str, directory) -> None:
        self.directory = directory
        self.kubeconfig = str(api.server.kubeconfig_path)
        (directory / "main.tf").write_text(MODULE.replace("NAMESPACE", namespace))

    def run(self, *arguments):
        return subprocess.run(
            ["terraform", *arguments],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.directory),
                "KUBE_CONFIG_PATH": self.kubeconfig,
                "TF_IN_AUTOMATION": "1",
                "CHECKPOINT_DISABLE": "1",
            },
        )

    def __call__(self, *arguments) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def terraform(api, namespace, tmp_path):
    client = Terraform(api, namespace, tmp_path)
    client("init", "-no-color", "-input=false")
    return client


def state(api, namespace):
    path = f"/api/v1/namespaces/{namespace}/secrets/tfstate-default-demo"
    secret = api.ok("GET", path)
    content = gzip.decompress(base64.b64decode(secret["data"]["tfstate"]))
    return secret, json.loads(content)


def test_state_is_created_updated_and_destroyed(api, namespace, terraform):
    terraform("apply", "-auto-approve", "-no-color", "-input=false", "-var=input=one")
    secret, content = state(api, namespace)
    labels = secret["metadata"]["labels"]
    assert labels["tfstate"] == "true"
    assert labels["tfstateSecretSuffix"] == "demo"
    assert labels["tfstateWorkspace"] == "default"
    assert labels["app.kubernetes.io/managed-by"] == "terraform"
    assert labels["captf.io/owner"] == "demo"
    assert secret["metadata"]["annotations"]["encoding"] == "gzip"
    assert content["outputs"]["it"]["value"] == "one"
    terraform("apply", "-auto-approve", "-no-color", "-input=false", "-var=input=two")
    after, content = state(api, namespace)
    assert after["metadata"]["uid"] == secret["metadata"]["uid"]
    assert content["outputs"]["it"]["value"] == "two"
    selected = api.ok(
        "GET", f"/api/v1/namespaces/{namespace}/secrets?labelSelector=tfstateSecretSuffix%3Ddemo"
    )
    assert [item["metadata"]["name"] for item in selected["items"]] == ["tfstate-default-demo"]
    terraform("destroy", "-auto-approve", "-no-color", "-input=false", "-var=input=two")
    assert state(api, namespace)[1]["resources"] == []


def test_the_lock_is_a_lease_that_keeps_others_out(api, namespace, terraform):
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/lock-tfstate-default-demo"
    terraform("apply", "-auto-approve", "-no-color", "-input=false", "-var=input=one")
    lease = api.ok("GET", path)
    assert not lease["spec"].get("holderIdentity")
    held = {
        "spec": {"holderIdentity": "someone"},
        "metadata": {
            "annotations": {
                "app.terraform.io/lock-info": json.dumps(
                    {"ID": "someone", "Operation": "OperationTypeApply", "Who": "a@b"}
                )
            }
        },
    }
    api.merge(path, held)
    refused = terraform.run("apply", "-auto-approve", "-no-color", "-input=false", "-var=input=two")
    assert refused.returncode != 0
    assert "Error acquiring the state lock" in refused.stderr
    assert "a@b" in refused.stderr
    terraform("force-unlock", "-force", "someone")
    assert not api.ok("GET", path)["spec"].get("holderIdentity")
    terraform("apply", "-auto-approve", "-no-color", "-input=false", "-var=input=two")
    assert state(api, namespace)[1]["outputs"]["it"]["value"] == "two"


def test_a_lock_without_a_state_can_only_be_deleted(api, namespace, tmp_path):
    """A run that dies in `init` before it has written the first, empty state leaves this; it is why
    the manager removes such a lock itself (state.md: The state lock)."""
    terraform = Terraform(api, namespace, tmp_path)
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    info = {"ID": "gone", "Operation": "init", "Who": "a@b"}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "lock-tfstate-default-demo",
            "annotations": {"app.terraform.io/lock-info": json.dumps(info)},
        },
        "spec": {"holderIdentity": "gone"},
    }
    api.ok("POST", leases, lease)
    init = ("init", "-no-color", "-input=false")
    assert "already locked" in terraform.run(*init).stderr
    assert terraform.run("force-unlock", "-force", "gone").returncode != 0
    api.ok("DELETE", f"{leases}/lock-tfstate-default-demo")
    terraform(*init)
    assert state(api, namespace)[1]["resources"] == []
