"""A change that waits for a person on a real control plane: what the manager may write there, and
that the approval of a person is one."""

import pytest

from captfctl.cluster.errors import Invalid
from captfctl.cluster.live import LiveDoor
from captfctl.model import keys
from captfctl.model.ops import Op
from captfctl.model.resources import TERRAFORM_PLANS
from tests.e2e.approvals import SERVER, Approvals, secrets_are_told_nowhere
from tests.e2e.site import SECRETS_IMAGE

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]


def test_a_plan_is_made_approved_and_applied_and_the_manager_cannot_approve_it(site):
    story = Approvals(site, "approvals", "Manual", f"--kubeconfig={site.kubeconfig}")
    story.create()
    story.wait_settled()
    story.set_variables(image="v2")
    plan = story.wait_phases("Pending")
    name = plan.metadata.name
    manager = LiveDoor.from_kubeconfig(site.manager_kubeconfig)
    forged = {"spec": {"approved": True, "approvedBy": "kubernetes-admin"}}
    with pytest.raises(Invalid, match="must be the user name of who approves"):
        manager.patch(TERRAFORM_PLANS, name, story.namespace, forged)
    manager.close()

    shown = story.approve(name, "--yes", "--allow-destructive")

    assert f"replace  {SERVER}" in shown
    applied = story.wait_phases("Applied")
    assert applied.metadata.labels[keys.PLAN_PHASE] == "Applied"
    assert f"terraformplan/{name} approved by {applied.spec.approved_by}\n" in shown
    story.wait_settled()
    (job,) = [j for j in story.jobs(Op.APPLY) if j.metadata.annotations.get(keys.PLAN) == name]
    assert job.metadata.annotations[keys.APPROVED_PLAN] == plan.spec.plan_hash


def test_secrets_of_a_module_are_told_nowhere(site):
    where = f"--kubeconfig={site.kubeconfig}"
    story = Approvals(site, "secrets", "Manual", where, SECRETS_IMAGE)

    def more() -> dict[str, str]:
        return {
            "log of the manager": site.managers["a"].output(),
            "metrics": site.diagnostics("/metrics", site.plane.token),
            "stacks": site.diagnostics("/debug/stacks", site.plane.token),
        }

    secrets_are_told_nowhere(story, more)
