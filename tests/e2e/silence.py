"""An API server that accepts connections and answers nothing (manager.md: Health)."""

from captfctl.model.ops import Op
from tests.e2e import hasty
from tests.e2e.managed import ManagedSite, probe
from tests.e2e.scenarios import Story
from tests.e2e.site import Captfctl, eventually
from tests.support.proxy import FaultProxy


def server_answers_nothing(site: ManagedSite, name: str) -> None:
    """The probes tell, a manager that is told to end meanwhile does, and the other one goes on by
    itself once it is over, although its connections lead nowhere any more.

    All in a fifth of the time that users wait: the probes tell within a minute.
    """
    with site.without_manager(), FaultProxy("127.0.0.1", site.port) as proxy:
        through = site.kubeconfig_through(proxy.port)
        stays, ends = (
            site.add_manager(name, kubeconfig=through, command=hasty.COMMAND)
            for name in ("stays", "ends")
        )
        eventually(lambda: well(stays) and well(ends), "both are well", 30)
        story = Story(site, name, seconds=4)
        story.create()
        story.wait_applying()

        proxy.hang()
        eventually(lambda: not well(stays), "the probes tell", 60 / 5)
        for path in ("/healthz", "/readyz"):
            status, text = probe(stays, path)
            assert status == 500
            assert "nothing is heard of" in text
        assert probe(stays, "/livez") == (200, "ok\n")  # no restart would help
        assert ends.terminate() == 0

        proxy.strand()
        proxy.heal()
        eventually(lambda: well(stays), lambda: f"well again: {probe(stays, '/readyz')}", 45)
        story.wait_settled()
        assert len(story.jobs(Op.APPLY)) == 1


def well(manager: Captfctl) -> bool:
    return all(probe(manager, path)[0] == 200 for path in ("/healthz", "/readyz"))
