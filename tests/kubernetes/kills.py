"""The manager is killed after its writes while changes are approved and states restored.

`python -m tests.kubernetes.kills [FLOW …]` prints one row of figures for each flow, on a real
control plane with real Terraform.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from captfctl.model import keys
from captfctl.model.ops import Op
from captfctl.model.resources import TERRAFORM_PLANS
from tests.e2e import restoring
from tests.e2e.approvals import Approvals
from tests.e2e.scenarios import Story
from tests.e2e.site import Captfctl, eventually
from tests.kubernetes.faults import real_site
from tests.kubernetes.site import MANAGER_ENVIRONMENT, RealSite
from tests.support.http_proxy import HttpFaultProxy

_PATIENCE = 500.0
_TIMES = 3
"""So often a write with one method and path ends a manager; the creation of a Job does once, since
the next manager waits for minutes before it takes a Job without its Secret for stuck."""


class MortalManager:
    """A manager behind a proxy that is killed after a write and started again: after the first few
    of each kind, or none would ever get beyond the lease that it takes first.

    Not after the write of an event: those are written beside the passes.
    """

    def __init__(self, site: RealSite, folder: Path) -> None:
        folder.mkdir()
        self._site = site
        self._door = site.door()
        self._proxy = HttpFaultProxy(site.plane.url, site.plane.ca_path, folder)
        kubeconfig = folder / "manager.kubeconfig"
        site.plane.write_kubeconfig(
            kubeconfig, site.manager_token, server=self._proxy.url, ca_path=self._proxy.ca_path
        )
        arguments = site.manager_arguments(kubeconfig)
        self._manager = Captfctl(folder / "manager.log", *arguments, **MANAGER_ENVIRONMENT)
        self._ended = threading.Event()
        self._writes: Counter[tuple[str, str]] = Counter()
        self.kills = 0
        self.broken: list[str] = []

    def __enter__(self) -> "MortalManager":
        self._proxy.after_write = self._kill
        self._proxy.__enter__()
        self._lives = threading.Thread(target=self._live)
        self._lives.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._manager.kill()
        self._lives.join()
        self._proxy.__exit__()
        self._door.close()

    def _live(self) -> None:
        while not self._ended.is_set():
            self._manager.launch()
            assert self._manager.child is not None
            self._manager.child.wait()

    def _kill(self, method: str, path: str) -> None:
        write = (method, path.partition("?")[0])
        self._writes[write] += 1
        most = 1 if method == "POST" and write[1].endswith("/jobs") else _TIMES
        if "/events" in path or self._writes[write] > most:
            return
        self._manager.kill()
        self.kills += 1
        live: dict[tuple[str, str], list[str]] = {}
        for plan in self._door.list(TERRAFORM_PLANS).items:
            if plan.live:
                target = (plan.metadata.namespace, plan.spec.target_ref.name)
                live.setdefault(target, []).append(plan.metadata.name)
        self.broken += [f"two live plans: {plans}" for plans in live.values() if len(plans) > 1]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one flow came to."""

    flow: str
    kills: int
    jobs: int
    """Of the kind that the flow is for: it must be one."""


HEADER = ("flow", "kills", "Jobs")


def _mortal(site: RealSite, flow: str) -> MortalManager:
    return MortalManager(site, site.folder / site.fresh_name(f"kills-{flow}"))


def _approved(site: RealSite, flow: str, policy: str) -> Row:
    story = Approvals(site, f"kills-{flow}", policy, f"--kubeconfig={site.kubeconfig}")
    story.create()
    story.wait_settled()
    with site.without_manager(), _mortal(site, flow) as manager:
        story.set_variables(image="v2")
        eventually(lambda: story.phases() == ["Pending"], story.explain, _PATIENCE)
        (plan,) = story.plans()
        story.approve(plan.metadata.name, "--yes", "--allow-destructive")
        eventually(
            lambda: story.phases() == ["Applied"] and story.settled(), story.explain, _PATIENCE
        )
    assert not manager.broken, manager.broken
    jobs = [j for j in story.jobs(Op.APPLY) if keys.APPROVED_PLAN in j.metadata.annotations]
    hashes = {job.metadata.annotations[keys.APPROVED_PLAN] for job in jobs}
    assert hashes == {plan.spec.plan_hash}, hashes
    return Row(flow=flow, kills=manager.kills, jobs=len(jobs))


def manual_change(site: RealSite) -> Row:
    """Every change waits for a person."""
    return _approved(site, "manual-change", "Manual")


def destructive_change(site: RealSite) -> Row:
    """A change that replaces something waits for a person."""
    return _approved(site, "destructive-change", "Automatic")


def restore(site: RealSite) -> Row:
    """A damaged state is restored."""
    story = Story(site, "kills-restore", seconds=0)
    serial = restoring.three_serials(story)
    before, applies = restoring.ids(story), len(story.jobs(Op.APPLY))
    with site.without_manager(), _mortal(site, "restore") as manager:
        restoring.cut_in_half(story)
        eventually(lambda: _reason(story) == "StateCorrupt", story.explain, _PATIENCE)
        restoring.request(story, serial)
        eventually(lambda: _restored(story), story.explain, _PATIENCE)
    assert restoring.ids(story) == before
    assert len(story.jobs(Op.APPLY)) == applies
    return Row(flow="restore", kills=manager.kills, jobs=len(story.jobs(Op.RESTORE)))


def _reason(story: Story) -> str:
    found = story.condition("StateReadable")
    return found.reason if found else ""


def _restored(story: Story) -> bool:
    asked = keys.RESTORE_STATE in story.cluster().metadata.annotations
    return not asked and _reason(story) == "StateRead" and story.settled()


FLOWS: dict[str, Callable[[RealSite], Row]] = {
    flow.__name__.replace("_", "-"): flow for flow in (manual_change, destructive_change, restore)
}


def main(names: list[str]) -> int:
    wrong = 0
    print(f"{HEADER[0]:20}{HEADER[1]:>8}{HEADER[2]:>8}")
    with real_site() as site:
        for name in names or list(FLOWS):
            row = FLOWS[name](site)
            wrong += row.jobs != 1
            print(f"{row.flow:20}{row.kills:8}{row.jobs:8}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
