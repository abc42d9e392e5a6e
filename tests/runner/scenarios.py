"""Small modules and the runs over them whose output is recorded from both runtimes.

`python -m tests.runner.scenarios RUNTIME...` records them again under tests/runner/recorded/.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple

RECORDED = Path(__file__).parent / "recorded"
REPOSITORY = Path(__file__).parents[2]
RECORDER = REPOSITORY / "tests" / "tools" / "recording_runtime.py"
SECRET = "recorded-canary-0123"


class Scenario(NamedTuple):
    """A run whose output is recorded.

    `before` is a module applied beforehand; `module` the one the recorded run sees, in the
    runtime's language or, when it is a mapping, in JSON; `stop` sends the runner a SIGTERM when
    the module has made the file `there`; the backend `http` refuses every state; `locked` lets
    somebody else hold the lock of the backend `kubernetes` during the recorded run.
    """

    module: str | Mapping[str, object]
    flags: tuple[str, ...] = ("--op=apply",)
    before: str = ""
    stop: bool = False
    backend: str = "local"
    locked: bool = False


ONE = """
variable "secret" {
  type      = string
  sensitive = true
}
resource "terraform_data" "one" { input = "first" }
resource "terraform_data" "hidden" { input = var.secret }
output "endpoint" { value = terraform_data.one.output }
"""

CHANGED = """
variable "secret" {
  type      = string
  sensitive = true
}
resource "terraform_data" "renamed" { input = "second" }
moved {
  from = terraform_data.one
  to   = terraform_data.renamed
}
resource "terraform_data" "hidden" {
  input            = "${var.secret}-changed"
  triggers_replace = ["new"]
}
resource "terraform_data" "added" {
  for_each = toset(["a", "b"])
  input    = each.key
}
output "endpoint" { value = terraform_data.renamed.output }
"""

FORGOTTEN = """
variable "secret" {
  type      = string
  sensitive = true
}
removed {
  from = terraform_data.one
  lifecycle { destroy = false }
}
resource "terraform_data" "hidden" { input = var.secret }
output "endpoint" { value = "none" }
"""

PROVISIONER = """
variable "secret" { type = string }
resource "terraform_data" "good" { input = 1 }
resource "terraform_data" "bad" {
  provisioner "local-exec" { command = "echo to standard output; echo failing >&2; exit 7" }
}
output "endpoint" { value = terraform_data.good.output }
"""

POSTCONDITION = """
variable "secret" { type = string }
resource "terraform_data" "checked" {
  count = 2
  input = "value"
  lifecycle {
    postcondition {
      condition     = self.output == "other"
      error_message = "The value is not the other one.\\nSecond line."
    }
  }
}
output "endpoint" { value = "none" }
"""

INVALID = """
variable "secret" { type = string }
resource "terraform_data" "one" { no_such_argument = 1 }
output "endpoint" { value = var.no_such_variable }
"""

SLOW = """
variable "secret" { type = string }
resource "terraform_data" "slow" {
  provisioner "local-exec" { command = "touch ../../there; exec sleep 60" }
}
output "endpoint" { value = "none" }
"""

FAILING_JSON = {
    "variable": {"secret": {"type": "string"}},
    "resource": {
        "terraform_data": {
            "in_json": {
                "input": "value",
                "lifecycle": {
                    "precondition": [
                        {"condition": "${var.secret == 1}", "error_message": "Never true."}
                    ]
                },
            }
        }
    },
    "output": {"endpoint": {"value": "none"}},
}

SCENARIOS = {
    "apply": Scenario(ONE),
    "apply-guarded": Scenario(CHANGED, ("--op=apply", "--guard-deletes"), before=ONE),
    "apply-nothing": Scenario(ONE, ("--op=apply", "--guard-deletes"), before=ONE),
    "plan": Scenario(CHANGED, ("--op=plan",), before=ONE),
    "plan-forget": Scenario(FORGOTTEN, ("--op=plan",), before=ONE),
    "drift": Scenario(CHANGED, ("--op=drift",), before=ONE),
    "refresh": Scenario(ONE, ("--op=refresh",), before=ONE),
    "destroy": Scenario(ONE, ("--op=destroy",), before=ONE),
    "failed-provisioner": Scenario(PROVISIONER),
    "failed-postcondition": Scenario(POSTCONDITION),
    "failed-precondition-json": Scenario(FAILING_JSON),
    "failed-validation": Scenario(INVALID),
    "failed-init": Scenario('module "missing" { source = "./missing" }\n' + ONE),
    "failed-unlock": Scenario(ONE, ("--op=refresh", "--force-unlock=no-such-lock"), before=ONE),
    "cleared-lock": Scenario(
        ONE, ("--op=refresh", "--force-unlock=gone"), before=ONE, backend="kubernetes"
    ),
    "foreign-lock": Scenario(
        ONE,
        ("--op=refresh", "--force-unlock=0123456789-0123456789-0123456789", "--lock-timeout=0"),
        before=ONE,
        backend="kubernetes",
        locked=True,
    ),
    "interrupted": Scenario(SLOW, stop=True),
    "unsaved-state": Scenario(ONE, backend="http"),
}

ROOT = {
    "variable": {"secret": {"type": "string", "sensitive": True}},
    "module": {"role": {"source": "../../module", "secret": "${var.secret}"}},
    "output": {"endpoint": {"value": "${module.role.endpoint}", "sensitive": True}},
}


def runtimes() -> list[str]:
    """The runtimes that are recorded."""
    return sorted(entry.name for entry in RECORDED.iterdir())


def record(runtime: str) -> None:
    """Run every scenario with a real runtime and keep what it printed."""
    listed = subprocess.run(
        [runtime, "version", "-json"], check=True, capture_output=True, env=_environ()
    )
    version = json.loads(listed.stdout)["terraform_version"].removesuffix("-dev")
    product = "opentofu" if "tofu" in Path(runtime).name else "terraform"
    target = RECORDED / f"{product}-{version}"
    shutil.rmtree(target, ignore_errors=True)
    for name, scenario in SCENARIOS.items():
        (target / name).mkdir(parents=True)
        with tempfile.TemporaryDirectory(prefix="captf-record-") as place:
            _Recording(Path(place), runtime, target / name).record(scenario)
    for empty in [file for file in target.rglob("*") if file.is_file() and not file.stat().st_size]:
        empty.unlink()


class _Recording:
    def __init__(self, place: Path, runtime: str, target: Path) -> None:
        self._place = place
        self._runtime = runtime
        self._target = target
        self._kubeconfig = ""
        (place / "config").mkdir()
        (place / "module").mkdir()
        (place / "state").mkdir()
        (place / "key").write_bytes(bytes(32))
        (place / "config" / "terraform.tfvars.json").write_text(json.dumps({"secret": SECRET}))

    def record(self, scenario: Scenario) -> None:
        if scenario.backend == "kubernetes":
            with _api_server(self._place) as kubeconfig:
                self._kubeconfig = str(kubeconfig)
                self._record(scenario)
        else:
            self._record(scenario)

    def _record(self, scenario: Scenario) -> None:
        root = {"terraform": {"backend": {scenario.backend: {}}}, **ROOT}
        (self._place / "config" / "main.tf.json").write_text(json.dumps(root))
        if scenario.before:
            self._write(scenario.before)
            self._run(Scenario("", backend=scenario.backend), [f"--bin={self._runtime}"])
        if scenario.locked:
            _lock(self._kubeconfig)
        self._write(scenario.module)
        wrapper = [RECORDER, self._target, self._place, self._runtime]
        self._run(scenario, [f"--bin={part}" for part in wrapper])

    def _write(self, module: str | Mapping[str, object]) -> None:
        for file in (self._place / "module").iterdir():
            file.unlink()
        if isinstance(module, str):
            (self._place / "module" / "main.tf").write_text(module)
        else:
            (self._place / "module" / "main.tf.json").write_text(json.dumps(module, indent=2))

    def _run(self, scenario: Scenario, runtime: list[str]) -> None:
        paths = [f"--{name}={self._place / name}" for name in ("module", "config", "result")]
        paths += [f"--workdir={self._place / 'work'}", f"--plan-key-file={self._place / 'key'}"]
        paths += [f"--providers={self._place / 'providers'}"]
        with _state_server() as address:
            backend = f"--backend-config=path={self._place}/state/default.tfstate"
            if scenario.backend == "http":
                backend = f"--backend-config=address={address}"
                paths.append("--backend-config=retry_max=0")
            elif scenario.backend == "kubernetes":
                backend = f"--backend-config=config_path={self._kubeconfig}"
                paths += ["--backend-config=secret_suffix=recorded"]
            flags = [*paths, backend, *runtime, *scenario.flags]
            command = [sys.executable, "-m", "runner", "run", *flags]
            process = subprocess.Popen(command, cwd=REPOSITORY, env=_environ())
            while scenario.stop and not (self._place / "there").exists():
                time.sleep(0.1)
            if scenario.stop:
                process.terminate()
            process.wait()


@contextmanager
def _api_server(place: Path) -> Iterator[Path]:
    """The kubeconfig of an API server for the backend that keeps its state in Secrets."""
    # Needed for recording only: the tests that read the scenarios do without.
    from captfctl.clock import SystemClock
    from captfctl.embedded.apiserver import ApiServer
    from captfctl.embedded.store import EmbeddedStore

    clock = SystemClock()
    store = EmbeddedStore.in_memory(clock)
    (place / "api").mkdir()
    server = ApiServer(store, data_dir=place / "api", clock=clock)
    server.start()
    try:
        yield server.kubeconfig_path
    finally:
        server.stop()


def _lock(kubeconfig: str) -> None:
    """Hold the state lock as another run would."""
    holder = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
    info = json.dumps({"ID": holder, "Operation": "OperationTypeApply", "Who": "root@other-pod"})
    change = {
        "metadata": {"annotations": {"app.terraform.io/lock-info": info}},
        "spec": {"holderIdentity": holder},
    }
    patch = ["patch", "lease", "lock-tfstate-default-recorded", "--type=merge", "-p"]
    command = ["kubectl", f"--kubeconfig={kubeconfig}", *patch, json.dumps(change)]
    subprocess.run(command, check=True)


@contextmanager
def _state_server() -> Iterator[str]:
    """A server that holds no state and takes none."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(500)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/state"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _environ() -> dict[str, str]:
    kept = {"PATH", "HOME", "TMPDIR"} & set(os.environ)
    return {**{name: os.environ[name] for name in kept}, "CHECKPOINT_DISABLE": "1"}


if __name__ == "__main__":
    for path in sys.argv[1:]:
        record(path)
