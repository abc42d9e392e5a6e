"""The six operations with a real Terraform or OpenTofu, its state in a file."""

import gzip
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.runner.harness import Job, Outcome, Started, wait_until
from tests.runner.scenarios import (
    CHANGED,
    FAILING_JSON,
    INVALID,
    ONE,
    POSTCONDITION,
    PROVISIONER,
    ROOT,
    SECRET,
    SLOW,
)

ROLE = "module.role.terraform_data"
RUNTIMES = [name for name in ("terraform", "tofu") if shutil.which(name)]

pytestmark = [
    pytest.mark.terraform,
    pytest.mark.skipif(not RUNTIMES, reason="neither terraform nor tofu is on PATH"),
]


class Site:
    """A Job with a real runtime."""

    def __init__(self, job: Job, runtime: str) -> None:
        self.job = job
        self._runtime = runtime
        self.module(ONE)
        root = {"terraform": {"backend": {"local": {}}}, **ROOT}
        (job.config / "main.tf.json").write_text(json.dumps(root))
        (job.config / "terraform.tfvars.json").write_text(json.dumps({"secret": SECRET}))

    def module(self, source: str | dict) -> None:
        for file in self.job.module.iterdir():
            file.unlink()
        if isinstance(source, str):
            (self.job.module / "main.tf").write_text(source)
        else:
            (self.job.module / "main.tf.json").write_text(json.dumps(source))

    def flags(self, *more: str) -> list[str]:
        given = [flag for flag in self.job.flags() if not flag.startswith("--bin")]
        backend = f"--backend-config=path={self.job.path / 'state.tfstate'}"
        return [*given, f"--bin={self._runtime}", backend, *more]

    def run(self, *more: str, environ: dict[str, str] | None = None) -> Outcome:
        outcome = self.job.run_arguments(self.flags(*more), environ)
        assert SECRET not in outcome.everything
        return outcome

    def start(self, *more: str) -> Started:
        return Started(self.job, self.flags(*more), self.job.environ)

    @property
    def state(self) -> dict:
        return json.loads((self.job.path / "state.tfstate").read_text())


@pytest.fixture(params=RUNTIMES)
def site(job: Job, request) -> Site:
    return Site(job, request.param)


def test_apply_plan_drift_refresh_and_destroy(site: Site):
    applied = site.run("--op=apply")
    assert applied.exit == 0, applied.err
    assert applied.document["changes"] == {"add": 2, "change": 0, "destroy": 0}
    assert applied.document["runtime"]["version"]
    assert site.run("--op=plan").document["plan"]["create"] == 0
    assert site.run("--op=drift").document["drift"]["detected"] is False

    site.module(CHANGED)
    assert site.run("--op=drift").document["drift"]["replace"] == 1
    blocked = site.run("--op=apply", "--guard-deletes", "--inputs-hash=h")
    assert blocked.error["kind"] == "blocked"
    planned = site.run("--op=plan").document["plan"]
    # The refresh of the drift run has already recorded the move.
    assert (planned["create"], planned["replace"]) == (2, 1)
    assert planned["hash"] == blocked.document["plan"]["hash"]

    changed = site.run("--op=apply", "--expect-plan=p2:" + "0" * 64)
    assert changed.error["kind"] == "plan-changed"
    approved = site.run("--op=apply", "--guard-deletes", f"--expect-plan={planned['hash']}")
    assert approved.exit == 0, approved.err
    assert approved.document["changes"] == {"add": 3, "change": 1, "destroy": 1}

    assert site.run("--op=refresh").exit == 0
    destroyed = site.run("--op=destroy")
    assert destroyed.document["changes"] == {"add": 0, "change": 0, "destroy": 4}
    assert site.state["resources"] == []


def test_a_backup_is_restored(site: Site):
    site.run("--op=apply")
    data = gzip.compress((site.job.path / "state.tfstate").read_bytes())
    site.run("--op=destroy")
    (site.job.config / "restore").mkdir()
    for index, piece in enumerate((data[:100], data[100:])):
        (site.job.config / "restore" / str(index)).write_bytes(piece)
    restored = site.run("--op=restore", "--restore-chunks=2", "--restore-resources=2")
    assert restored.exit == 0, restored.err
    assert {resource["name"] for resource in site.state["resources"]} == {"one", "hidden"}
    assert f"{ROLE}.one" in restored.out


@pytest.mark.parametrize(
    ("module", "step", "resource", "text"),
    [
        (PROVISIONER, "apply", f"{ROLE}.bad", "local-exec"),
        (POSTCONDITION, "apply", "terraform_data.checked", "not the other one"),
        (FAILING_JSON, "apply", "", "Never true"),
        (INVALID, "validate", "", "no_such_argument"),
    ],
)
def test_a_failure_names_step_error_and_resource(site: Site, module, step, resource, text):
    outcome = site.run("--op=apply")
    assert outcome.exit == 0
    site.module(module)
    failed = site.run("--op=apply")
    assert failed.exit == 1
    assert (failed.error["kind"], failed.error["step"]) == ("step", step)
    assert text in failed.error["tail"]
    named = [entry.partition(": ")[0] for entry in failed.error.get("resources", [])]
    assert named == ([resource] if resource else [])


HOSTILE = {
    "TF_LOG": "TRACE",
    "TF_CLI_ARGS": "-no-such-flag",
    "TF_CLI_ARGS_apply": "-destroy",
    "TF_CLI_ARGS_init": "-backend=false",
    "TF_WORKSPACE": "elsewhere",
    "TF_DATA_DIR": "/nonexistent/data",
    "TF_CLI_CONFIG_FILE": "/nonexistent/config",
    "TF_VAR_secret": "injected",
    "TF_PLUGIN_CACHE_DIR": "/nonexistent/cache",
    "TERRAFORM_CONFIG": "/nonexistent/config",
    "KUBE_CONFIG_PATH": "/nonexistent/kubeconfig",
    "KUBE_TOKEN": "injected",
}


def test_nothing_inherited_changes_what_the_runtime_does(site: Site):
    broken = site.job.path / "broken.tfrc"
    broken.write_text("this is { no configuration")
    environ = {**site.job.environ, **HOSTILE, "TERRAFORM_CONFIG": str(broken)}
    home = site.job.path / "home"
    home.mkdir()
    for name in (".terraformrc", ".tofurc"):
        (home / name).write_text("this is { no configuration")
    environ |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    outcome = site.run("--op=apply", environ=environ)
    assert outcome.exit == 0, outcome.err
    assert outcome.document["changes"]["add"] == 2
    assert "TRACE" not in outcome.err.replace('"TF_LOG"', "")
    assert [resource["name"] for resource in site.state["resources"]] == ["hidden", "one"]


def test_an_empty_mirror_is_no_reason_to_ask_a_registry(site: Site):
    (site.job.path / "providers").mkdir()
    needs = (
        'terraform {\n  required_providers {\n    time = { source = "hashicorp/time" }\n  }\n}\n'
    )
    site.module(needs + ONE)
    outcome = site.run("--op=apply")
    assert (outcome.exit, outcome.error["step"]) == (1, "init")
    assert outcome.document["image"]["providersMirror"] is True


def _processes_below(path: Path) -> list[str]:
    """The processes whose working directory is below a path."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and (entry / "cwd").readlink().is_relative_to(path):
                found.append(entry.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_apply_ends_in_order_and_the_next_one_converges(site: Site, number):
    site.module(SLOW)
    started = site.start("--op=apply")
    wait_until((site.job.path / "there").exists, "the provisioner")
    started.signal(number)
    outcome = started.end()
    assert outcome.exit == 1
    assert (outcome.error["kind"], outcome.error["step"]) == ("interrupted", "apply")
    assert not (site.job.path / ".state.tfstate.lock.info").exists()
    assert _processes_below(site.job.workdir) == []
    site.module(ONE)
    converged = site.run("--op=apply")
    assert converged.exit == 0, converged.err


def test_a_runtime_that_cannot_take_a_sigterm_in_time_is_killed(site: Site):
    deaf = "trap '' TERM; : > ../../there; exec sleep 60"
    site.module(SLOW.replace("touch ../../there; exec sleep 60", deaf))
    started = site.start("--op=apply", "--stop-timeout=500ms")
    wait_until((site.job.path / "there").exists, "the provisioner")
    started.signal()
    outcome = started.end()
    assert outcome.error["kind"] == "interrupted"
    assert _processes_below(site.job.workdir) == []


def test_a_killed_runtime_fails_its_step_and_leaves_no_provisioner(site: Site):
    site.module(SLOW)
    started = site.start("--op=apply")
    there = site.job.path / "there"
    wait_until(there.exists, "the provisioner")
    children = Path(f"/proc/{started.process.pid}/task/{started.process.pid}/children")
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    outcome = started.end()
    assert outcome.exit == 1
    assert (outcome.error["kind"], outcome.error["step"]) == ("step", "apply")
    assert "SIGKILL" in outcome.error["tail"]
    assert _processes_below(site.job.workdir) == []
