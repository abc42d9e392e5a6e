"""dist/runner: one file that starts anywhere; `make runner-binary` builds it
(runner.md: The built executable)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from captfctl.version import VERSION
from tests.runner.events_server import EventsServer
from tests.runner.harness import REPOSITORY, Job

EXECUTABLE = REPOSITORY / "dist" / "runner"


def why_not_built() -> str:
    """Why the executable cannot be tested here; empty when it can."""
    if not EXECUTABLE.exists():
        return "dist/runner is not built (make runner-binary)"
    newest = max(file.stat().st_mtime for file in (REPOSITORY / "runner").glob("*.py"))
    if newest > EXECUTABLE.stat().st_mtime:
        return "dist/runner is older than its source (make runner-binary)"
    return ""


pytestmark = pytest.mark.skipif(bool(why_not_built()), reason=why_not_built() or "-")


def _run(*arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[bytes]:
    command = [EXECUTABLE, *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=environ)


def test_it_is_static_and_tells_its_build():
    facts = json.loads(_run("--version=raw").stdout)
    assert facts["version"] == f"v{VERSION}"
    assert len(facts["gitCommit"]) == 40
    data = EXECUTABLE.read_bytes()
    assert data[:4] == b"\x7fELF"
    assert b"/lib64/ld-linux" not in data[:4096]


def test_copy_puts_the_same_file_in_place(tmp_path):
    copied = tmp_path / "runner"
    assert _run("copy", copied).returncode == 0
    assert copied.read_bytes() == EXECUTABLE.read_bytes()
    again = tmp_path / "again"
    assert subprocess.run([copied, "copy", again], check=False).returncode == 0
    assert again.read_bytes() == EXECUTABLE.read_bytes()
    assert again.stat().st_mode & 0o777 == 0o755


def test_it_runs_an_operation_with_events(job: Job, tmp_path):
    server = EventsServer(tmp_path / "module", tmp_path / "account")
    escaped = job.marker("pid")
    job.play("init", script=f"setsid sleep 600 >/dev/null 2>&1 & echo $! > {escaped}")
    try:
        flags = job.flags("--op=refresh", "--event-object=v1/Pod/ns/n/uid", "--logging-format=json")
        done = _run(*flags, **job.environ, **server.environ)
    finally:
        server.close()
    assert done.returncode == 0, done.stderr
    assert json.loads(job.result.read_text())["error"] is None
    assert server.reasons[0] == "RunStarted" and server.reasons[-1] == "RunFinished"
    assert all(
        json.loads(line)["caller"].startswith("runner/") for line in done.stderr.splitlines()
    )
    assert not Path(f"/proc/{escaped.read_text().strip()}").exists()


def _static_terraform() -> Path | None:
    for name in ("terraform", "tofu"):
        path = shutil.which(name)
        if path and b"/lib64/ld-linux" not in Path(path).read_bytes()[:4096]:
            return Path(path)
    return None


EMPTY_IMAGE = """
set -e
mount --bind "$image" "$image"
mount -t tmpfs -o mode=1777 tmp "$image/tmp"
mount -t tmpfs -o mode=1777 work "$image/captf/work"
mount -t tmpfs -o mode=1777 bin "$image/captf/bin"
mount -t proc proc "$image/proc"
mount --bind "$runtime" "$image/captf/runtime"
mount -o remount,ro,bind "$image"
set -- chroot --userspec=65532:65532 "$image"
"$@" /runner copy /captf/bin/runner
touch "$image/tmp/result"
chown 65532:65532 "$image/tmp/result"
code=0
"$@" /captf/bin/runner run --op=apply --result=/tmp/result --providers=/captf/none \
    --backend-config=path=/captf/work/state.tfstate || code=$?
cat "$image/tmp/result" > "$output/result"
cp "$image/captf/work/state.tfstate" "$output/state"
cmp "$image/captf/bin/runner" "$image/runner"
exit $code
"""

MODULE = """
variable "name" { type = string }
resource "terraform_data" "this" { input = var.name }
output "name" { value = terraform_data.this.output }
"""
ROOT = {
    "terraform": {"backend": {"local": {}}},
    "variable": {"name": {}},
    "module": {"role": {"source": "../../module", "name": "${var.name}"}},
}


@pytest.mark.terraform
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts and a change of root directory")
@pytest.mark.skipif(_static_terraform() is None, reason="needs a statically linked runtime on PATH")
def test_in_an_empty_read_only_image_it_applies_as_an_unprivileged_user(tmp_path):
    runtime = _static_terraform()
    assert runtime is not None
    image = tmp_path / "image"
    for name in ("tmp", "proc", "captf/work", "captf/bin", "captf/module", "captf/config"):
        (image / name).mkdir(parents=True)
    (image / "captf" / "runtime").touch(0o755)
    (image / "captf" / "module" / "main.tf").write_text(MODULE)
    (image / "captf" / "config" / "main.tf.json").write_text(json.dumps(ROOT))
    (image / "captf" / "config" / "terraform.tfvars.json").write_text('{"name":"empty"}')
    shutil.copy(EXECUTABLE, image / "runner")
    environ = {"PATH": os.environ["PATH"], "image": str(image), "output": str(tmp_path)}
    done = subprocess.run(
        ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "sh", "-c", EMPTY_IMAGE],
        env={**environ, "runtime": str(runtime)},
        capture_output=True,
        check=False,
        text=True,
    )
    if "Operation not permitted" in done.stderr and "mount" in done.stderr:
        pytest.skip("this machine forbids mounts")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "result").read_text())
    assert result["error"] is None
    assert [step["name"] for step in result["steps"]] == ["init", "validate", "apply"]
    assert result["changes"] == {"add": 1, "change": 0, "destroy": 0}
    assert json.loads((tmp_path / "state").read_text())["resources"]
