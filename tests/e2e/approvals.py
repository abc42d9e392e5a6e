"""Changes that wait for a person: one cluster, and what a test asks about it."""

import gzip
import json
import subprocess
from typing import Any

from captfctl.model import keys, names
from captfctl.model.plan import TerraformPlan, plans_of
from captfctl.model.resources import SECRETS, TERRAFORM_PLANS
from tests.e2e.scenarios import NAME, Story
from tests.e2e.site import APPROVALS_IMAGE, CAPTFCTL, IMAGE, Site, eventually

SERVER = "module.role.terraform_data.server"


class Approvals(Story):
    """The quick start's objects with the module of examples/approvals."""

    def __init__(self, site: Site, namespace: str, policy: str, where: str) -> None:
        """`where`: the flag of `captfctl approve` that leads to the site."""
        super().__init__(site, namespace)
        self.where = where
        self.replace(IMAGE, APPROVALS_IMAGE)
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
        command = [CAPTFCTL, "approve", "-n", self.namespace, self.where]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
