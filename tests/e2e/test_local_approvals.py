"""Changes that wait for a person, with real Terraform on the embedded control plane."""

import json

import pytest

from captfctl.model import keys
from captfctl.model.ops import Op
from tests.e2e.approvals import SERVER, Approvals, secrets_are_told_nowhere
from tests.e2e.scenarios import NAME
from tests.e2e.site import SECRETS_IMAGE, LocalSite
from tests.support.binaries import LOCAL_STORIES

pytestmark = LOCAL_STORIES


def test_a_manual_change_is_applied_as_it_was_approved_or_not_at_all(site: LocalSite):
    story = Approvals(site, "manual", "Manual", f"--data={site.data}")
    story.create()
    story.wait_settled()
    assert story.plans() == []  # the first apply waits for nobody

    story.set_variables(size="large")
    plan = story.wait_phases("Pending")
    message = story.wait_reason("PlanAwaitingApproval")
    assert f"captfctl approve {plan.metadata.name} -n {story.namespace}" in message
    assert story.is_true("Ready")
    assert len(story.jobs(Op.APPLY)) == 1
    shown = story.approve("--target", f"terraformcluster/{NAME}", "--yes")
    assert f"update  {SERVER}" in shown
    assert f"kubectl logs job/{story.jobs(Op.PLAN)[0].metadata.name}" in shown
    applied = story.wait_phases("Applied")
    assert applied.spec.approved_by == "local-admin"
    assert story.server()["attributes"]["input"]["value"]["size"] == "large"
    story.wait_settled()

    # The world changes between the plan and its approval.
    story.set_variables(size="huge")
    stale = story.wait_phases("Pending", "Applied").metadata.name
    story.taint()
    story.approve(stale, "--yes")
    changed = story.wait_phases("Pending", "Failed", "Applied")
    assert stale in story.wait_reason("PlanChanged")
    assert story.server()["attributes"]["input"]["value"]["size"] == "large"
    assert (changed.spec.summary.replace, changed.spec.summary.update) == (1, 0)
    story.approve(changed.metadata.name, "--yes", "--allow-destructive")
    story.wait_phases("Applied", "Failed", "Applied")
    assert story.server()["attributes"]["input"]["value"]["size"] == "huge"
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 4


def test_what_would_replace_something_waits_and_is_approved_with_kubectl(site: LocalSite):
    story = Approvals(site, "guarded", "Automatic", f"--data={site.data}")
    story.create()
    story.wait_settled()
    story.set_variables(size="large")
    story.wait_settled()
    assert story.plans() == []  # a change in place waits for nobody
    server = story.server()["attributes"]["id"]

    story.set_variables(image="v2")
    plan = story.wait_phases("Pending")
    assert f"{SERVER} (replace)" in story.wait_reason("DestructivePlanBlocked")
    assert plan.metadata.labels[keys.DESTRUCTIVE] == "true"
    assert story.server()["attributes"]["id"] == server
    for name, refusal in [("bob", "must be the user name of who approves"), ("local-admin", "")]:
        patch = json.dumps({"spec": {"approved": True, "approvedBy": name}})
        flags = ("-n", story.namespace, "--type=merge", "-p", patch)
        kubectl = story.site.kubectl
        if refusal:
            with pytest.raises(AssertionError, match=refusal):
                kubectl("patch", "tfplan", plan.metadata.name, *flags)
        else:
            kubectl("patch", "tfplan", plan.metadata.name, *flags)
    story.wait_phases("Applied")
    story.wait_settled()
    assert story.server()["attributes"]["id"] != server
    (approved,) = story.events("PlanApproved")
    assert "local-admin" in approved.note


def test_secrets_of_a_module_are_told_nowhere(site: LocalSite):
    story = Approvals(site, "secrets", "Manual", f"--data={site.data}", SECRETS_IMAGE)
    secrets_are_told_nowhere(story, lambda: {"log of the control plane": site.up.output()})


def test_a_plan_is_approved_while_the_control_plane_is_stopped(tmp_path):
    site = LocalSite(tmp_path / "site")
    site.start()
    try:
        story = Approvals(site, "stopped", "Manual", f"--data={site.data}")
        story.create()
        story.wait_settled()
        story.set_variables(size="large")
        name = story.wait_phases("Pending").metadata.name
        site.stop()

        shown = story.approve(name, "--yes")

        assert f"terraformplan/{name} approved by local-admin" in shown
        site.start()
        story.door = site.door()
        story.wait_phases("Applied")
        assert story.server()["attributes"]["input"]["value"]["size"] == "large"
    finally:
        site.stop()
