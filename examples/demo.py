"""`make demo`: the quick start from a file to infrastructure and back, with a real run each time.

Everything happens in a temporary directory, and nothing is left behind.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
QUICKSTART = HERE / "quickstart"
REHEARSAL = HERE.parent / "tests" / "tools" / "rehearsal_runtime.py"
CAPTFCTL = Path(sys.executable).with_name("captfctl")

NO_RUNTIME = """\
Neither terraform nor tofu is on PATH. To see real runs, install one of them:
  Terraform  https://developer.hashicorp.com/terraform/install
  OpenTofu   https://opentofu.org/docs/intro/install
REHEARSAL: this demo goes on with a rehearsal runtime, which only acts as one: no plan, no provider.
"""


class Demo:
    """One walk through the quick start; `prefix` marks every line of a rehearsal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects = folder / "cluster.yaml"
        self.images = folder / "images.yaml"
        self.rehearsal = not (shutil.which("terraform") or shutil.which("tofu"))
        self.prefix = "REHEARSAL: " if self.rehearsal else ""

    def run(self) -> None:
        if self.rehearsal:
            print(NO_RUNTIME, flush=True)
        self._write_images()
        shutil.copyfile(QUICKSTART / "cluster.yaml", self.objects)
        self._say("What would captfctl do? A dry run is the decision alone.")
        self._captfctl("reconcile", "-f", str(self.objects), "--dry-run")
        self._say("Do it: a control plane on this machine, one Job, a real run.")
        self._reconcile()
        self._say("The object and its run.")
        self._get("terraformclusters,jobs")
        self._say("Change a variable, subnets: 2 -> 3, and reconcile again: a second apply.")
        text = self.objects.read_text().replace("subnets: 2", "subnets: 3")
        self.objects.write_text(text)
        self._reconcile()
        self._get("jobs")
        self._say("Once more: nothing to do, no Job.")
        self._reconcile()
        self._say("Delete it: the infrastructure is destroyed first.")
        self._captfctl("delete", "-f", str(self.objects), "--yes", *self._local())
        self._say("What is left of it:")
        self._get("terraformclusters,secrets,jobs,leases", "-n", "default")

    def _write_images(self) -> None:
        runtime = f"\n  runtime: {REHEARSAL}" if self.rehearsal else ""
        self.images.write_text(
            "registry.example.com/quickstart/cluster:v1:\n"
            f"  module: {QUICKSTART / 'module'}{runtime}\n"
        )

    def _local(self) -> tuple[str, ...]:
        return ("--local", "--images", str(self.images), "--data", str(self.folder / "data"))

    def _reconcile(self) -> None:
        self._captfctl("reconcile", "-f", str(self.objects), *self._local())

    def _get(self, kinds: str, *flags: str) -> None:
        self._captfctl("get", kinds, *flags, "--data", str(self.folder / "data"))

    def _say(self, text: str) -> None:
        print(f"\n# {self.prefix}{text}", flush=True)

    def _captfctl(self, *arguments: str) -> None:
        shown = " ".join(arguments).replace(str(self.folder), "$DEMO")
        print(f"{self.prefix}$ captfctl {shown}", flush=True)
        environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
        subprocess.run([CAPTFCTL, *arguments], check=True, env=environment)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="captfctl-demo-") as folder:
        try:
            Demo(Path(folder)).run()
        except subprocess.CalledProcessError as error:
            print(f"Error: the command above ended with {error.returncode}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
