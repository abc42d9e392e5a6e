#!/usr/bin/env python3
"""Stop a real slow apply at random instants, take the API server or the disk away at the end of
each of its steps, and look at what is left.

    python tests/tools/interrupt_matrix.py [--rounds 20] [--runtime terraform] [--only TEXT]

The module makes five resources that sleep; state and lock are in the embedded API server. Each
round starts from nothing and is stopped by SIGTERM to the runner, by SIGKILL to the runner (what is
left of its processes is then killed, as the node agent and a container's end do), or by SIGKILL to
the runtime; or the API server is away for 2, 10 or 60 s from the end of a step on, once with a full
disk. Afterwards: the state can be read, the lock is free or names the dead pod, no process is left,
and the next apply converges. A run that was not stopped has stored its state itself, nothing is
created twice, and no lock is left.

Then the same with a whole control plane, where pods are deleted, nodes drained, deadlines reached,
supervisors and node agents stopped: afterwards the object comes up by itself, nothing was created
twice, and no lock, pod or process is left. Prints tables; exits with 1 when a round fails.
"""

import argparse
import contextlib
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from captfctl.clock import SystemClock  # noqa: E402
from captfctl.cluster.errors import NotFound  # noqa: E402
from captfctl.embedded.apiserver import ApiServer  # noqa: E402
from captfctl.embedded.store import EmbeddedStore  # noqa: E402
from captfctl.model.resources import LEASES, SECRETS  # noqa: E402
from runner.descendants import Family  # noqa: E402
from tests.support.proxy import FaultProxy  # noqa: E402
from tests.tools import interrupted_pods  # noqa: E402
from tests.tools.outages import OUTAGES, Outage, small_disk, strike  # noqa: E402
from tests.tools.tally import RoundError, Tally, table  # noqa: E402

STOPS = ("SIGTERM runner", "SIGKILL runner", "SIGKILL runtime")
BY_NAME = {str(outage): outage for outage in OUTAGES}
WAYS = (*STOPS, *BY_NAME)
POD = "interrupted-apply-pod"
RESOURCES = 5
PLANNED = "--guard-deletes"  # so that there is a plan whose end can be struck
PATIENCE = 150.0
LAST_WORDS = 30.0
LOCK_INFO = "app.terraform.io/lock-info"

MODULE = """
resource "terraform_data" "slow" {
  count = 4
  input = count.index
  provisioner "local-exec" {
    command = "echo ${count.index} >> CREATED; sleep 0.${count.index + 1}"
  }
}
resource "terraform_data" "last" {
  depends_on = [terraform_data.slow]
  provisioner "local-exec" { command = "echo last >> CREATED; : > LAST; sleep 0.3" }
}
"""
ROOT = {
    "terraform": {"backend": {"kubernetes": {}}},
    "module": {"role": {"source": "../../module"}},
}


class Site:
    """One object's directories, its state and its lock."""

    def __init__(
        self, place: Path, runtime: str, store: EmbeddedStore, server: ApiServer, port: int
    ) -> None:
        """`port`: where the runs find the server."""
        self.place = place
        self.work = place / "work"
        self.at_end = place / "last"
        self._created = place / "created"
        self.result = place / "result"
        self._runtime = runtime
        self._door = store.door()
        self._suffix = f"s{random.randrange(1 << 40):x}"
        for name in ("module", "config"):
            (place / name).mkdir()
        module = MODULE.replace("CREATED", str(self._created)).replace("LAST", str(self.at_end))
        (place / "module" / "main.tf").write_text(module)
        (place / "config" / "main.tf.json").write_text(json.dumps(ROOT))
        (place / "config" / "terraform.tfvars.json").write_text("{}")
        self._backend = [
            f"--backend-config=secret_suffix={self._suffix}",
            "--backend-config=namespace=default",
            f"--backend-config=config_path={self._access(server, port)}",
        ]

    def _access(self, server: ApiServer, port: int) -> Path:
        """A kubeconfig, and what a pod knows of the server: its runner goes on while it is away."""
        account = self.place / "account"
        account.mkdir()
        shutil.copy(server.ca_path, account / "ca.crt")
        shutil.copy(server.token_path, account / "token")
        self._pod = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(port),
            "CAPTF_SERVICE_ACCOUNT_DIR": str(account),
        }
        text, own = server.kubeconfig_path.read_text(), server.url.rpartition(":")[2]
        kubeconfig = self.place / "kubeconfig"
        kubeconfig.write_text(text.replace(f":{own}", f":{port}"))
        return kubeconfig

    @property
    def created(self) -> list[str]:
        """What was created, each time."""
        return self._created.read_text().split() if self._created.exists() else []

    @property
    def made(self) -> int:
        """How many resources the stored state has."""
        listed = (self.state() or {}).get("resources")
        return sum(len(entry["instances"]) for entry in listed) if isinstance(listed, list) else 0

    def start(self, *more: str) -> "subprocess.Popen[bytes]":
        """Start an apply in a pod of its own: here, with a host name of its own."""
        paths = [f"--{name}={self.place / name}" for name in ("module", "config", "result")]
        flags = [*paths, f"--workdir={self.work}", f"--bin={self._runtime}", "--stop-timeout=20s"]
        run = ["run", "--op=apply", *flags, *self._backend]
        command = [sys.executable, "-m", "runner", *run]
        named = f'hostname {POD} && exec "$@"'
        with (self.place / "log").open("ab") as log:
            return subprocess.Popen(
                [*_own_host_name(), "sh", "-c", named, "sh", *command, *more],
                cwd=REPOSITORY,
                env={"PATH": os.environ["PATH"], "CHECKPOINT_DISABLE": "1", **self._pod},
                stdout=log,
                stderr=log,
            )

    def end_of(self, process: "subprocess.Popen[bytes]", seconds: float = PATIENCE) -> int:
        """Wait for the run; its exit code. One that goes on is ended, and told with its log."""
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LAST_WORDS)
            process.kill()
            process.wait()
            log = (self.place / "log").read_text(errors="replace").splitlines()
            text = "\n".join(log[-40:])
            raise RoundError(f"the run goes on after {seconds:.0f} s:\n{text}") from None

    def state(self) -> dict[str, object] | None:
        """The stored state; None when nothing was stored. Raises when it cannot be read.

        The backend makes its Secret first and puts the state in with a second request: stopped in
        between, it leaves a Secret without data, which both runtimes read as no state.
        """
        name = f"tfstate-default-{self._suffix}"
        try:
            data = self._door.get(SECRETS, name, "default").data.get("tfstate")
        except NotFound:
            return None
        if data is None:
            return None
        state = json.loads(gzip.decompress(data))
        if state["version"] != 4:
            raise RoundError("the state is of another version")
        return state

    def lock(self) -> tuple[str, str]:
        """The ID and the pod of the lock's holder; empty when it is free."""
        try:
            lease = self._door.get(LEASES, f"lock-tfstate-default-{self._suffix}", "default")
        except NotFound:
            return "", ""
        holder = lease.spec.holder_identity or ""
        if not holder:
            return "", ""
        info = json.loads((lease.metadata.annotations or {}).get(LOCK_INFO, "{}"))
        return info.get("ID") or holder, info.get("Who", "").rpartition("@")[2]

    def remove_lock(self) -> None:
        """As captfctl does where there is no state, which Terraform can neither initialize nor
        unlock."""
        self._door.delete(LEASES, f"lock-tfstate-default-{self._suffix}", "default")

    def processes(self) -> list[str]:
        """What still runs below the work directory."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdecimal() and (entry / "cwd").readlink().is_relative_to(self.place):
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found


def _own_host_name() -> list[str]:
    for command in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    sys.exit("interrupt_matrix: needs a host name of its own for each pod (unshare --uts)")


def _children(pid: int) -> list[int]:
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _stop(way: str, process: "subprocess.Popen[bytes]") -> str:
    """Stop the run; return what was running: the runtime's subcommand."""
    running = next((_command(pid) for pid in _children(process.pid)), "between steps")
    if way == "SIGTERM runner":
        process.terminate()
    elif way == "SIGKILL runner":
        process.kill()
    else:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            if children := _children(process.pid):
                running = _command(children[0])
                os.kill(children[0], signal.SIGKILL)
                break
    return running


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "between steps"
    return words[1].decode() if len(words) > 1 else "starting"


def _round(site: Site, way: str, instant: float, family: Family, tally: Tally) -> None:
    process = site.start()
    time.sleep(instant)
    hit = _stop(way, process)
    exit_code = site.end_of(process)
    if way == "SIGKILL runner":
        family.kill_orphans()
    tally.hit[hit] += 1
    tally.ends[_end(site, exit_code)] += 1
    if left := site.processes():
        raise RoundError(f"processes are left: {left}")
    tally.state["none yet" if site.state() is None else "readable"] += 1
    holder, pod = site.lock()
    if holder and pod != POD:
        raise RoundError(f"the lock is held by {pod!r}, not by the dead pod")
    tally.lock["names the pod" if holder else "free"] += 1
    if holder and site.state() is None:
        site.remove_lock()
        holder = ""
    # Killed, Terraform may leave half a file of its settings; each pod begins with an empty volume.
    shutil.rmtree(site.work, ignore_errors=True)
    again = site.start(*([f"--force-unlock={holder}"] if holder else []))
    if site.end_of(again) != 0:
        raise RoundError(f"the next apply failed: {site.result.read_text()}")
    _converged(site)


def _converged(site: Site) -> None:
    if site.made != RESOURCES or site.lock() != ("", ""):
        raise RoundError(
            f"the next apply did not converge: {site.made} resources, lock {site.lock()}"
        )


def _outage(site: Site, outage: Outage, proxy: FaultProxy, tally: Tally) -> None:
    """One round in which the run itself lives."""
    disk = small_disk(site.work) if outage.full_disk else contextlib.nullcontext()
    with disk:
        process = site.start(PLANNED)

        def running() -> str:
            return next((_command(pid) for pid in _children(process.pid)), "between steps")

        ended = lambda: process.poll() is not None  # noqa: E731
        back = strike(outage, proxy, site.work, site.at_end, running, ended)
        exit_code = site.end_of(process, PATIENCE + outage.seconds)
        back.join()
        tally.hit[f"end of {outage.step}"] += 1
        tally.ends[_end(site, exit_code)] += 1
        if left := site.processes():
            raise RoundError(f"processes are left: {left}")
        if len(site.created) != site.made:
            raise RoundError(f"the state is lost: {site.created} created, {site.made} in the state")
        tally.state["none yet" if site.state() is None else "stored"] += 1
        if site.lock() != ("", ""):
            raise RoundError(f"a lock is left: {site.lock()}")
        tally.lock["free"] += 1
        with contextlib.suppress(OSError):
            (site.work / "filler").unlink()
        if site.end_of(site.start(PLANNED)) != 0:
            raise RoundError(f"the next apply failed: {site.result.read_text()}")
    _converged(site)
    if len(site.created) != RESOURCES:
        raise RoundError(f"resources were created twice: {site.created}")


def _end(site: Site, exit_code: int) -> str:
    """How the run ended, as its result tells; a killed runner leaves none."""
    if exit_code < 0:
        return "no result"
    error = json.loads(site.result.read_text())["error"]
    return "success" if error is None else str(error["kind"])


def run(
    rounds: int, runtime: str, rng: random.Random, ways: Sequence[str] = WAYS
) -> dict[str, Tally]:
    """Carry out the rounds of these ways."""
    tallies = {way: Tally() for way in ways}
    family = Family()
    family.adopt_orphans()
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="captf-matrix-") as scratch:
        store = EmbeddedStore.in_memory(clock)
        (Path(scratch) / "api").mkdir()
        server = ApiServer(store, data_dir=Path(scratch) / "api", clock=clock)
        server.start()
        proxy = FaultProxy("127.0.0.1", int(server.url.rpartition(":")[2]))
        try:
            proxy.__enter__()
            length = _length(Path(scratch), runtime, store, server)
            for number in range(rounds):
                for way, tally in tallies.items():
                    place = Path(scratch) / f"{way.replace(' ', '-').replace(',', '')}-{number}"
                    place.mkdir()
                    site = Site(place, runtime, store, server, proxy.port)
                    tally.rounds += 1
                    try:
                        if way in BY_NAME:
                            _outage(site, BY_NAME[way], proxy, tally)
                        else:
                            _round(site, way, rng.uniform(0, length), family, tally)
                    except (
                        RoundError,
                        OSError,
                        LookupError,
                        ValueError,
                    ) as error:
                        tally.failures.append(f"{way}, round {number}: {error}")
                    shutil.rmtree(place, ignore_errors=True)
        finally:
            proxy.__exit__()
            server.stop()
            family.release()
    return tallies


def _length(scratch: Path, runtime: str, store: EmbeddedStore, server: ApiServer) -> float:
    """How long an undisturbed apply takes on this machine."""
    place = scratch / "undisturbed"
    place.mkdir()
    site = Site(place, runtime, store, server, int(server.url.rpartition(":")[2]))
    started = time.monotonic()
    if site.end_of(site.start()) != 0:
        raise RoundError((place / "log").read_text())
    return time.monotonic() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="rounds of each way (default 20)")
    parser.add_argument("--runtime", default="terraform", help="terraform or tofu")
    parser.add_argument(
        "--seed", type=int, default=None, help="repeat the instants of an older run"
    )
    parser.add_argument("--only", default="", help="only the ways whose name has this text")
    options = parser.parse_args()
    if shutil.which(options.runtime) is None:
        sys.exit(f"interrupt_matrix: {options.runtime} is not on PATH")
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    sys.stdout.write(f"seed {seed}\n")
    rng = random.Random(seed)
    failed = False
    if ways := [way for way in WAYS if options.only in way]:
        failed |= _shown(run(options.rounds, options.runtime, rng, ways))
    if ways := [way for way in interrupted_pods.WAYS if options.only in way]:
        failed |= _shown(interrupted_pods.run(options.rounds, rng, ways))
    return 1 if failed else 0


def _shown(tallies: dict[str, Tally]) -> bool:
    """Print the table; whether a round failed."""
    sys.stdout.write(table(tallies))
    sys.stdout.flush()
    return any(tally.failures for tally in tallies.values())


if __name__ == "__main__":
    sys.exit(main())
