"""A secret given in every way there is, through every way a run can go: shown nowhere
(runner.md: Redaction)."""

import base64
import json
import threading
from pathlib import Path

import pytest

from tests.runner.events_server import EventsServer
from tests.runner.harness import Job, Outcome, Started
from tests.runner.test_real_runtime import RUNTIMES

VARIABLE = "canary-in-a-variable-51c0"
MULTILINE = 'canary-line-one-7d1e\n<canary> "line" & two-7d1e\n'
ENVIRONMENT = "canary-env-93aa"
ATTRIBUTE = "canary-attribute-0b77"
FRAGMENTS = ("canary-in-a", "canary-line-one", "two-7d1e", "canary-env", "canary-attribute", "0b77")
OBJECT = "infrastructure.cluster.x-k8s.io/v1alpha1/TerraformCluster/ns/n/uid"

ROOT = {
    "terraform": {"backend": {"local": {}}},
    "variable": {
        "password": {"type": "string", "sensitive": True},
        "document": {"type": "string", "sensitive": True},
        "fail": {"type": "string"},
    },
    "module": {
        "role": {
            "source": "../../module",
            "password": "${var.password}",
            "document": "${var.document}",
            "fail": "${var.fail}",
        }
    },
    "output": {"echo": {"value": "${module.role.echo}", "sensitive": True}},
}

# The module does what modules must not: it echoes its secrets through nonsensitive() and commands.
MODULE = f"""
variable "password" {{ type = string }}
variable "document" {{ type = string }}
variable "fail" {{ type = string }}
resource "terraform_data" "echo" {{
  input = nonsensitive(var.password)
  provisioner "local-exec" {{
    command     = "echo $A $MY_TOKEN; printf '%s' \\"$B\\"; printf '%s' \\"$A\\" >&2"
    environment = {{ A = nonsensitive(var.password), B = nonsensitive(var.document) }}
  }}
  provisioner "local-exec" {{
    when    = destroy
    command = "echo ${{self.input}} $MY_TOKEN"
  }}
}}
resource "terraform_data" "attribute" {{
  input = sensitive("{ATTRIBUTE}")
}}
resource "terraform_data" "checked" {{
  input      = "x-${{var.fail}}"
  depends_on = [terraform_data.echo]
  lifecycle {{
    precondition {{
      condition     = var.fail != "yes"
      error_message = "Refused: ${{nonsensitive(var.password)}}"
    }}
  }}
}}
output "echo" {{ value = nonsensitive(var.password) }}
"""


class Canary:
    """A Job full of secrets, and everything that was seen of it."""

    def __init__(self, job: Job, server: EventsServer, runtime: list[str]) -> None:
        self.job = job
        self._server = server
        self._runtime = runtime
        self.fragments: tuple[str, ...] = FRAGMENTS
        (job.module / "main.tf").write_text(MODULE)
        (job.config / "main.tf.json").write_text(json.dumps(ROOT))
        self.variables()
        self._environ = {**job.environ, **server.environ, "MY_TOKEN": ENVIRONMENT}

    def variables(self, fail: str = "no") -> None:
        values = {"password": VARIABLE, "document": MULTILINE, "fail": fail}
        (self.job.config / "terraform.tfvars.json").write_text(json.dumps(values))

    def run(self, *more: str) -> Outcome:
        """Run as a process of its own, and look for the secrets everywhere."""
        given = [flag for flag in self.job.flags() if not flag.startswith("--bin")]
        backend = f"--backend-config=path={self.job.path / 'state.tfstate'}"
        runtime = [f"--bin={part}" for part in self._runtime]
        events = f"--event-object={OBJECT}"
        watched: set[str] = set()
        over = threading.Event()
        watcher = threading.Thread(target=_watch_arguments, args=(self.job.workdir, watched, over))
        watcher.start()
        try:
            arguments = [*given, *runtime, backend, events, *more]
            outcome = Started(self.job, arguments, self._environ).end()
        finally:
            over.set()
            watcher.join()
        seen = outcome.everything + json.dumps(self._server.events) + "".join(watched)
        for fragment in self.fragments:
            assert fragment not in seen, _around(seen, fragment)
        assert "Traceback" not in outcome.err
        return outcome


def _around(text: str, fragment: str) -> str:
    place = text.index(fragment)
    return text[max(place - 200, 0) : place + 100]


def _watch_arguments(workdir: Path, found: set[str], over: threading.Event) -> None:
    """Collect the command lines of the runner and of the runtime while they run.

    Provisioners are commands of the module; what it puts on their command lines is its own.
    """
    while not over.wait(0.01):
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                if str((entry / "cwd").readlink()).startswith(str(workdir)):
                    command = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
                    if not command.startswith("/bin/sh\0-c"):
                        found.add(command)
            except OSError:
                continue


@pytest.fixture
def server(tmp_path):
    server = EventsServer(tmp_path / "module", tmp_path / "account")
    yield server
    server.close()


@pytest.mark.terraform
@pytest.mark.skipif(not RUNTIMES, reason="neither terraform nor tofu is on PATH")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_no_operation_of_a_real_runtime_shows_a_secret(job: Job, server, runtime):
    canary = Canary(job, server, [runtime])
    planned = canary.run("--op=plan")
    assert planned.exit == 0, planned.err
    applied = canary.run("--op=apply", "--guard-deletes")
    assert applied.exit == 0, applied.err
    assert applied.out.count("(sensitive)") >= 3
    canary.variables(fail="yes")
    for flags in (["--op=apply"], ["--op=apply", "--guard-deletes"], ["--op=plan"]):
        failed = canary.run(*flags)
        assert failed.exit == 1
        assert "precondition failed" in failed.error["tail"]
        assert "Refused: (sensitive)" in failed.err
    canary.variables()
    assert canary.run("--op=drift").exit == 0
    assert canary.run("--op=refresh").exit == 0
    destroyed = canary.run("--op=destroy")
    assert destroyed.exit == 0, destroyed.err


DISGUISED = 'p@ss/w\u00f6rd "x" $Y\'z & canary-7f3a!'
# The module shows its secret in disguise: in values, addresses, errors and its commands' output.
SHOWS = """
variable "password" { type = string }
variable "document" { type = string }
variable "fail" { type = string }
locals {
  secret = nonsensitive(var.password)
  forms = {
    base64 = base64encode(local.secret)
    one    = base64encode("x${local.secret}y")
    two    = base64encode("xy${local.secret}")
    basic  = "Basic ${base64encode("admin:${local.secret}")}"
    url    = "https://u:${urlencode(local.secret)}@example.com/"
    json   = jsonencode({ p = local.secret })
    twice  = jsonencode({ policy = jsonencode({ p = local.secret }) })
  }
}
resource "terraform_data" "shown" {
  for_each = local.forms
  input    = each.value
  provisioner "local-exec" {
    command     = <<-END
      printf '%s ' "$FORM"
      set -x
      : "$SECRET"
      printf %s "$SECRET" | base64 >&2
    END
    environment = { FORM = each.value, SECRET = local.secret }
  }
}
resource "terraform_data" "named" {
  for_each = toset(values(local.forms))
}
resource "terraform_data" "checked" {
  input      = "x-${var.fail}"
  depends_on = [terraform_data.shown]
  lifecycle {
    precondition {
      condition     = var.fail != "yes"
      error_message = "Refused: ${join(" ", values(local.forms))}"
    }
  }
}
output "echo" { value = local.forms }
"""


def pieces_of_base64(value: str) -> set[str]:
    """Twelve characters each of what base64 makes of the value in any longer text."""
    found = set()
    for before in range(3):
        one = base64.b64encode(b"\x00" * before + value.encode() + b"\x00\x00").decode()
        other = base64.b64encode(b"\xff" * before + value.encode() + b"\xff\xff").decode()
        same = "".join(a if a == b else " " for a, b in zip(one, other, strict=True)).strip()
        found |= {same[at : at + 12] for at in range(len(same) - 11)}
    assert len(found) > 60
    return found


@pytest.mark.terraform
@pytest.mark.skipif(not RUNTIMES, reason="neither terraform nor tofu is on PATH")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_no_operation_shows_a_secret_in_disguise(job: Job, server, runtime):
    canary = Canary(job, server, [runtime])
    canary.fragments = ("canary-7f3a", *pieces_of_base64(DISGUISED))
    (job.module / "main.tf").write_text(SHOWS)

    def variables(fail: str) -> None:
        values = {"password": DISGUISED, "document": "", "fail": fail}
        (job.config / "terraform.tfvars.json").write_text(json.dumps(values))

    variables("no")
    planned = canary.run("--op=plan")
    assert planned.exit == 0, planned.err
    listed = planned.document["plan"]["resources"]
    assert any("(sensitive)" in address for address in listed), listed
    variables("yes")
    failed = canary.run("--op=apply")
    assert failed.exit == 1
    assert "(sensitive)" in failed.error["tail"]
    variables("no")
    applied = canary.run("--op=apply", "--guard-deletes")
    assert applied.exit == 0, applied.err
    (job.module / "main.tf").write_text(SHOWS.replace("toset(values(local.forms))", "toset([])"))
    blocked = canary.run("--op=apply", "--guard-deletes")
    assert blocked.error["kind"] == "blocked"
    assert "(sensitive)" in blocked.error["tail"]
    assert canary.run("--op=drift").exit == 0
    destroyed = canary.run("--op=destroy")
    assert destroyed.exit == 0, destroyed.err


CRASHES = {
    "on standard output": f"printf 'some text {VARIABLE[:-4]}'; kill -KILL $$",
    "on standard error": f"printf 'Error: some text {VARIABLE[:-4]}' >&2; kill -KILL $$",
    "after a whole one": f"printf 'some text {VARIABLE}'; kill -SEGV $$",
    "in a message": f'printf \'{{"@message":"x {VARIABLE}\'; kill -KILL $$',
    "in a message's middle": f'printf \'{{"@message":"x {VARIABLE[:-4]}\'; kill -KILL $$',
}


@pytest.mark.parametrize("step", ["init", "apply"])
@pytest.mark.parametrize("crash", CRASHES)
def test_a_runtime_that_crashes_in_mid_line_shows_no_secret(job: Job, server, step, crash):
    job.play(step, script=CRASHES[crash])
    canary = Canary(job, server, [flag.partition("=")[2] for flag in job.flags()[1:3]])
    outcome = canary.run("--op=apply")
    assert outcome.exit == 1
    assert outcome.error["step"] == step


DEFECTS = {
    "in a step": "import runner.run as place; place.Run._record",
    "in the events": "import runner.events as place; place.Events._document",
    "in the result": "import runner.result as place; place.Result.encode",
    "in the redaction": "import runner.context as place; place.Context.hide",
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_of_the_runner_shows_no_secret(job: Job, server, tmp_path, defect):
    """A traceback would show the values in its message; there is none."""
    imported, _, attribute = DEFECTS[defect].partition("; ")
    path = tmp_path / "site"
    path.mkdir()
    (path / "sitecustomize.py").write_text(
        f"{imported}\n"
        "def broken(self, *values, **named):\n"
        f"    raise RuntimeError('{VARIABLE} {ATTRIBUTE}', values, vars(self))\n"
        f"{attribute} = broken\n"
    )
    canary = Canary(job, server, [flag.partition("=")[2] for flag in job.flags()[1:3]])
    canary._environ["PYTHONPATH"] = str(path)
    outcome = canary.run("--op=apply")
    assert (outcome.exit == 0) is (defect == "in the events")
    assert (outcome.result is None) is (defect == "in the result")
    if outcome.exit:
        assert "internal error: RuntimeError" in outcome.everything
