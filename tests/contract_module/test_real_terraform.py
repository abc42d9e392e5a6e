"""The rendered root under a real runtime (module-contract.md: The rendered root module)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from captfctl.model.capi import Endpoint
from captfctl.model.interface import REQUIRED_OUTPUTS, inputs_of
from captfctl.terraform.contract.jsontext import parse
from captfctl.terraform.contract.render import render
from captfctl.terraform.contract.values import ContractInputs, Network
from captfctl.terraform.contract.variables import UserVariable
from tests.contract_module.objects import cluster_inputs, machine_inputs, pool_inputs

RUNTIME = shutil.which("terraform") or shutil.which("tofu")

pytestmark = [
    pytest.mark.terraform,
    pytest.mark.skipif(RUNTIME is None, reason="neither terraform nor tofu is on PATH"),
]

FULL_CLUSTER = cluster_inputs(
    control_plane_endpoint=Endpoint(host="api.example.com", port=6443),
    kubernetes_version="v1.36.2",
    cluster_network=Network(pods=("10.0.0.0/8",), api_server_port=8443),
)
HEALTH = '{ state = "running", healthy = true, message = null, reasons = [] }'


def module(inputs: ContractInputs, extra: str = "", without: str = "") -> str:
    """A module that declares every input of the role and answers with constants."""
    lines = [f'variable "{row.name}" {{\n  type = {row.type}\n}}' for row in inputs_of(inputs.role)]
    for name in REQUIRED_OUTPUTS[inputs.role]:
        if name != without:
            value = HEALTH if name == "health" else "null"
            lines.append(f'output "{name}" {{\n  value = {value}\n}}')
    return "\n".join([*lines, extra, ""])


class Root:
    """A run's directories, and the runtime inside them."""

    def __init__(self, base: Path, source: str, inputs: ContractInputs, variables=None) -> None:
        self.directory = base / "work" / "root"
        self.directory.mkdir(parents=True)
        (base / "module").mkdir()
        (base / "module" / "main.tf").write_text(source)
        # A local backend, as `init` completes the empty one of a Job from its flags.
        for name, body in render(inputs, variables or {}).data().items():
            text = body.decode().replace('"kubernetes": {}', '"local": {}')
            (self.directory / name).write_text(text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        assert RUNTIME is not None
        return subprocess.run(
            [RUNTIME, *arguments],
            cwd=self.directory,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.directory),
                "TF_INPUT": "0",
                "CHECKPOINT_DISABLE": "1",
            },
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def validate(self) -> str:
        """ "" when it is valid, else the errors. The local files need no network."""
        init = self.run("init", "-no-color")
        assert init.returncode == 0, init.stdout + init.stderr
        result = self.run("validate", "-no-color")
        return "" if result.returncode == 0 else result.stdout + result.stderr


@pytest.mark.parametrize(
    "inputs",
    [cluster_inputs(), FULL_CLUSTER, machine_inputs(), pool_inputs(node_labels={"a": "<b>"})],
    ids=["cluster", "full-cluster", "machine", "pool"],
)
def test_a_module_that_keeps_the_contract_plans(tmp_path, inputs):
    root = Root(tmp_path, module(inputs), inputs)
    assert root.validate() == ""
    plan = root.run("plan", "-no-color", "-detailed-exitcode")
    assert plan.returncode in (0, 2), plan.stdout + plan.stderr


def test_a_module_without_a_required_output_does_not_validate(tmp_path):
    inputs = cluster_inputs()
    errors = Root(tmp_path, module(inputs, without="health"), inputs).validate()
    assert "Unsupported attribute" in errors


def test_a_variable_that_the_module_does_not_declare_does_not_validate(tmp_path):
    inputs = cluster_inputs()
    variables = {"size": UserVariable(value="40")}
    errors = Root(tmp_path, module(inputs), inputs, variables).validate()
    assert "Extraneous JSON object property" in errors or "Unsupported argument" in errors


def test_a_text_is_converted_to_the_number_that_the_module_declares(tmp_path):
    inputs = cluster_inputs()
    source = module(
        inputs,
        'variable "size" {\n  type = number\n}\n'
        'resource "terraform_data" "this" {\n  input = var.size + 1\n}\n',
    )
    root = Root(tmp_path, source, inputs, {"size": UserVariable(value="40")})
    assert root.validate() == ""
    assert root.run("plan", "-out=plan", "-no-color").returncode == 0
    shown = json.loads(root.run("show", "-json", "plan").stdout)
    (change,) = shown["resource_changes"]
    assert change["change"]["after"]["input"] == 41


def test_texts_and_large_numbers_arrive_as_they_were_written(tmp_path):
    inputs = cluster_inputs()
    source = module(
        inputs,
        'variable "pw" {\n  type = string\n}\nvariable "id" {\n  type = number\n}\n'
        'resource "terraform_data" "this" {\n  input = "${var.pw}-${var.id}"\n}\n',
    )
    variables = {
        "pw": UserVariable(value="a<b>&\u2028é", sensitive=True),
        "id": UserVariable(value=parse("12345678901234567890")),
    }
    root = Root(tmp_path, source, inputs, variables)
    assert root.validate() == ""
    assert root.run("apply", "-auto-approve", "-no-color").returncode == 0
    state = json.loads((root.directory / "terraform.tfstate").read_text())
    (resource,) = state["resources"]
    attributes = resource["instances"][0]["attributes"]
    assert attributes["input"]["value"] == "a<b>&\u2028é-12345678901234567890"
