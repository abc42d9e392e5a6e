"""Changes that wait for a person: one cluster, and what a test asks about it."""

import gzip
import json
import subprocess
from collections.abc import Callable
from typing import Any

from captfctl.cluster.apply import LAST_APPLIED
from captfctl.model import keys, names
from captfctl.model.ops import Op
from captfctl.model.plan import TerraformPlan, plans_of
from captfctl.model.resources import (
    EVENTS,
    JOBS,
    LEASES,
    PODS,
    SECRETS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_PLANS,
)
from tests.e2e.scenarios import NAME, Story
from tests.e2e.site import APPROVALS_IMAGE, CAPTFCTL, IMAGE, Site, eventually

SERVER = "module.role.terraform_data.server"


class Approvals(Story):
    """The quick start's objects with the module of examples/approvals."""

    def __init__(
        self, site: Site, namespace: str, policy: str, where: str, image: str = APPROVALS_IMAGE
    ) -> None:
        """`where`: the flag of `captfctl approve` that leads to the site."""
        super().__init__(site, namespace)
        self.where = where
        self.replace(IMAGE, image)
        self.replace("    region: eu-north\n    subnets: 2\n", "    size: small\n    image: v1\n")
        self.replace("  variables:\n", f"  applyPolicy: {policy}\n  variables:\n")

    def plans(self) -> list[TerraformPlan]:
        """Newest first."""
        found = self.door.list(TERRAFORM_PLANS, self.namespace).items
        return plans_of(found, "TerraformCluster", NAME, self.cluster().metadata.uid)

    def phases(self) -> list[str]:
        return [plan.phase.value for plan in self.plans()]

    def wait_phases(self, *phases: str) -> TerraformPlan:
        """Until the plans are in these phases, newest first; the newest."""
        eventually(
            lambda: self.phases() == list(phases),
            lambda: f"{phases}, not {self.phases()}: {self.explain()}",
        )
        return self.plans()[0]

    def wait_reason(self, reason: str) -> str:
        """Until `ApplyJobSucceeded` has the reason; its message."""

        def told() -> bool:
            found = self.condition("ApplyJobSucceeded")
            return found is not None and found.reason == reason

        eventually(told, lambda: f"{reason}: {self.explain()}")
        found = self.condition("ApplyJobSucceeded")
        assert found is not None
        return found.message

    def server(self) -> dict[str, Any]:
        """The one instance of the server in the state."""
        return self._server(json.loads(gzip.decompress(self._secret().data[keys.TFSTATE])))

    def taint(self) -> None:
        """What another run of Terraform does to the state."""
        secret = self._secret()
        document = json.loads(gzip.decompress(secret.data[keys.TFSTATE]))
        self._server(document)["status"] = "tainted"
        document["serial"] += 1
        secret.data[keys.TFSTATE] = gzip.compress(json.dumps(document).encode())
        self.door.update(SECRETS, secret)

    def _secret(self) -> Any:
        suffix = names.state_suffix("TerraformCluster", self.namespace, NAME)
        return self.door.get(SECRETS, names.state_secret(suffix), self.namespace)

    @staticmethod
    def _server(document: dict[str, Any]) -> dict[str, Any]:
        (server,) = [r for r in document["resources"] if r["name"] == "server"]
        (instance,) = server["instances"]
        found: dict[str, Any] = instance
        return found

    def approve(self, *arguments: str) -> str:
        """What `captfctl approve` prints."""
        return self.captfctl("approve", "-n", self.namespace, *arguments)

    def captfctl(self, command: str, *arguments: str) -> str:
        """What a command prints about this site."""
        done = subprocess.run(
            [CAPTFCTL, command, self.where, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shown(self) -> dict[str, str]:
        """Everything about the cluster that people may see, by where: without its spec and the
        contents of Secrets."""
        texts = {}
        for resource in (TERRAFORM_PLANS, EVENTS, JOBS, PODS, LEASES):
            texts[resource.kind] = json.dumps(self.door.list(resource.untyped()).items)
        secrets = self.door.list(SECRETS.metadata_only(), self.namespace).items
        # kubectl repeats in an annotation what it was given to apply.
        ours = [one for one in secrets if LAST_APPLIED not in one.metadata.annotations]
        texts["metadata of Secrets"] = repr(ours)
        cluster = self.door.get(TERRAFORM_CLUSTERS.untyped(), NAME, self.namespace)
        texts["status"] = json.dumps(cluster["status"])
        return texts


PLAIN = "canary-7f3c19b2"
"""The value of a variable. It is in the spec, and Terraform's own log may have it."""
SECRET = ("not-a-real-token", "sensitive-4c1d92aa")
"""A credential that a provider quotes in its error, and a sensitive output."""


def secrets_are_told_nowhere(story: Approvals, more: Callable[[], dict[str, str]]) -> None:
    """A change is approved and applied, the next one fails with a credential in its error. `more`:
    what else the site shows, by where."""
    story.create()
    story.wait_settled()
    story.set_variables(size=PLAIN)
    plan = story.wait_phases("Pending").metadata.name
    printed = story.approve(plan, "--dry-run", "-o", "json") + story.approve(plan, "--yes")
    story.wait_phases("Applied")
    story.wait_settled()

    story.set_variables(fail=True)
    plan = story.wait_phases("Pending", "Applied").metadata.name
    printed += story.approve(plan, "--yes")
    message = story.wait_reason("ApplyFailed")
    assert "the server refuses" in message
    flags = ("-n", story.namespace, "--list")
    printed += story.captfctl("restore", f"terraformcluster/{NAME}", *flags)

    shown = {"terminal": printed} | story.shown() | more()
    logs = story.site.kubectl(
        "logs", "-n", story.namespace, f"job/{story.jobs(Op.APPLY)[-1].metadata.name}"
    )
    assert "the server refuses" in logs
    assert all(shown.values())
    found = [(w, v) for w, text in shown.items() for v in (PLAIN, *SECRET) if v in text]
    found += [("log of the run", value) for value in SECRET if value in logs]
    assert found == []
