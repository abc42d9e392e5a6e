"""What a module's files say about its variables, compared with what Terraform says
(module-contract.md: Variables that a module declares)."""

import json
import os
import random
import re
import shutil
import subprocess

import pytest

from captfctl.model.interface import input_names
from captfctl.model.kinds import Role
from captfctl.terraform.contract.hcl import NotHcl, blocks
from captfctl.terraform.contract.module_variables import configuration_files, declared_variables
from captfctl.terraform.contract.variables import UserVariable
from captfctl.terraform.contract.variables_schema import variable_problems

RUNTIME = shutil.which("terraform") or shutil.which("tofu")
NAMES = ("region", "zone", "size", "count_of", "tags-x", "ünïcode", "default", "type")

CASES = 10

# Texts in which a bracket, a quote or a word is not what it seems to be.
LITERALS = (
    '"plain"',
    '"a } in a text"',
    r'"an escaped \" and \\"',
    '"$${not.a.template} %%{neither} $ {"',
    '"${"a } in a template"} { "',
    '"%{ if true }yes }%{ else }${"no"}%{ endif }"',
    '<<EOT\nvariable "fake" { default = 1\n  } EOT not yet\n"\nEOT',
    '<<-EOT\n  ${"EOT"} default = 1\n  %{ for a in ["}"] }x%{ endfor }\n  EOT',
    '{\n  default = 1 # {\n  variable = { default = ["}"] }\n}',
    '["]", /* } */ "x"]',
)
DESCRIPTIONS = (*LITERALS[:4], LITERALS[6])
"""Those without templates."""
BETWEEN = (
    "",
    '# variable "fake" {\n',
    '/* variable "fake" {\n default = 1 */\n',
    "// }\n",
    'locals { fakeN = "}" }\n',
    "locals {\n  defaultN = { variable = <<EOT\n}\nEOT\n  }\n}\n",
    'output "variableN" {\n  value = 1 == 1 ? { default : "x" } : { default : "}" }\n}\n',
    'check "xN" {\n  assert {\n    condition = "${path.module}}" != "{"\n'
    '    error_message = "default = ${1}"\n  }\n}\n',
)


def variable(rng: random.Random, name: str) -> str:
    if rng.random() < 0.15:
        inside = rng.choice(["", ' default = "}" ', " type = any "])
        return f'variable "{name}" {{{inside}}}\n'
    lines = []
    if rng.random() < 0.5:
        lines.append(f"description = {rng.choice(DESCRIPTIONS)}")
    if rng.random() < 0.5:
        lines.append(f"default = {rng.choice(LITERALS)}")
    if rng.random() < 0.3:
        lines.append("type = any # default = 1")
    if rng.random() < 0.3:
        condition = f'jsonencode(var.{name}) != "{{\\"default = ${{1}}"'
        lines.append(f'validation {{\n  condition = {condition}\n  error_message = "No."\n}}')
    rng.shuffle(lines)
    body = "".join(f"  {line}\n" for line in lines)
    return f'variable "{name}" {{\n{body}}}\n'


def as_json(rng: random.Random, names: list[str]) -> str:
    bodies = {name: {"default": "x"} if rng.random() < 0.5 else {"type": "any"} for name in names}
    listed = [{name: body} for name, body in bodies.items()]
    declared = {"variable": rng.choice([bodies, listed])} if names else {}
    text = json.dumps({"//": "a comment", "output": {"variable": {"value": 1}}, **declared})
    return text if rng.random() < 0.5 else f"[{text}]"


def write_module(rng: random.Random, folder) -> None:
    folder.mkdir()
    names = [name for name in NAMES if rng.random() < 0.6]
    at = rng.randrange(len(names) + 1)
    native = "".join(
        rng.choice(BETWEEN).replace("N", str(number)) + variable(rng, name)
        for number, name in enumerate(names[:at])
    )
    native = native if rng.random() < 0.7 else native.replace("\n", "\r\n")
    (folder / "main.tf").write_text(native, newline="")
    (folder / "more.tf.json").write_text(as_json(rng, names[at:]))
    if names and rng.random() < 0.4:
        (folder / "x_override.tf").write_text(f'variable "{names[0]}" {{\n  default = "x"\n}}\n')
    for ignored in (".hidden.tf", "main.tf~", "other.txt"):
        (folder / ignored).write_text('variable "fake" {')


@pytest.mark.terraform
@pytest.mark.skipif(RUNTIME is None, reason="neither terraform nor tofu is on PATH")
def test_undeclared_and_missing_variables_are_those_that_terraform_names(tmp_path):
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    given, calls = {}, {}
    for number in range(CASES):
        case = f"case_{number}"
        write_module(rng, tmp_path / case)
        given[case] = [name for name in (*NAMES, "fake") if rng.random() < 0.4]
        arguments = "".join(f'  {name} = "x"\n' for name in given[case])
        calls[case] = f'module "{case}" {{\n  source = "./{case}"\n{arguments}}}\n'
    (tmp_path / "main.tf").write_text("".join(calls.values()))
    told = run_terraform(tmp_path, "init", "-backend=false")
    assert "successfully initialized" in told, told

    for case, names in given.items():
        (tmp_path / "main.tf").write_text(calls[case])  # it stops at the first call that is wrong
        schema = declared_variables(configuration_files(tmp_path / case), Role.CLUSTER)
        assert schema is not None, (seed, case)
        problems = variable_problems(schema, {name: UserVariable(value="x") for name in names})
        assert {p.variable for p in problems} == refused_by_terraform(tmp_path), (seed, case)


def refused_by_terraform(folder) -> set[str]:
    """The arguments that the module should not or should have been given."""
    found = set()
    for diagnostic in json.loads(run_terraform(folder, "validate", "-json"))["diagnostics"]:
        kind = diagnostic["summary"]
        assert kind in ("Unsupported argument", "Missing required argument"), diagnostic
        found.update(re.findall(r'[Aa]rgument (?:named )?"([^"]+)"', diagnostic["detail"]))
    return found


def run_terraform(folder, *arguments: str) -> str:
    done = subprocess.run(
        [str(RUNTIME), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"CHECKPOINT_DISABLE": "1"},
    )
    return done.stdout or done.stderr


@pytest.mark.parametrize(
    "text",
    [
        'variable "x" {',
        'variable "x" {}}',
        'variable "x" { default = "a }',
        'variable "x" { default = (1} }',
        "variable = 1",
        "}",
        "variable {\n  default = <<EOT\n}\n",
        'variable "x" { default = "${" }',
        "{",
        "\x00",
    ],
)
def test_what_is_no_hcl_declares_nothing_certain(text, tmp_path):
    with pytest.raises(NotHcl):
        blocks(text)
    (tmp_path / "main.tf").write_text(text)
    assert declared_variables(configuration_files(tmp_path), Role.CLUSTER) is None


@pytest.mark.parametrize("text", ["{", "[1]", '{"variable": 1}', '{"variable": {"x": 1}}'])
def test_json_that_terraform_would_refuse_declares_nothing_certain(text, tmp_path):
    (tmp_path / "main.tf.json").write_text(text)
    assert declared_variables(configuration_files(tmp_path), Role.CLUSTER) is None


def test_inputs_of_the_contract_are_given_by_captfctl(tmp_path):
    everything = sorted(input_names(Role.CLUSTER) | input_names(Role.MACHINE))
    (tmp_path / "main.tf").write_text("".join(f'variable "{name}" {{}}\n' for name in everything))
    schema = declared_variables(configuration_files(tmp_path), Role.CLUSTER)
    assert schema is not None
    assert set(schema.required) == input_names(Role.MACHINE) - input_names(Role.CLUSTER)
    assert set(schema.properties) == set(schema.required)


def test_what_only_one_runtime_reads_may_be_given_and_left_out(tmp_path):
    (tmp_path / "a.tf").write_text('variable "both" {}\nvariable "terraform" {}\n')
    (tmp_path / "a.tofu").write_text('variable "both" {}\nvariable "opentofu" {}\n')
    schema = declared_variables(configuration_files(tmp_path), Role.CLUSTER)
    assert schema is not None
    assert set(schema.properties) == {"both", "terraform", "opentofu"}
    assert schema.required == ()
