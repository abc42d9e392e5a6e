"""The scenarios on the embedded control plane."""

import contextlib
import os
import re
import shutil
import signal
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.embedded.layout import STORE
from captfctl.embedded.store import EmbeddedStore
from captfctl.model import keys
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS, NODES
from tests.e2e import scenarios
from tests.e2e.scenarios import Story
from tests.e2e.site import IMAGE, ROOT, Captfctl, LocalSite, eventually
from tests.support.binaries import LOCAL_STORIES

QUICKSTART = ROOT / "examples" / "quickstart" / "cluster.yaml"

pytestmark = LOCAL_STORIES


def test_a_cluster_lives_and_dies_and_leaves_nothing_behind(site):
    scenarios.lives_and_dies(Story(site, "life"))


def test_every_change_waits_for_an_approval(site):
    scenarios.changes_wait_for_an_approval(Story(site, "manual"))


def test_a_protected_cluster_is_kept_until_the_protection_is_taken_off(site):
    scenarios.protected_cluster_is_kept(Story(site, "protected"))


def quickstart_with_a_secret_of_its_namespace(folder: Path) -> Path:
    """The quick start without an identity: the object names the Secret itself."""
    reference = "identityRef:\n    name: quickstart"
    text = QUICKSTART.read_text()
    assert reference in text
    parts = text.replace(reference, f"{reference}-credentials\n    kind: Secret").split("---\n")
    file = folder / "local-secret.yaml"
    file.write_text("---\n".join(part for part in parts if "allowedNamespaces" not in part))
    return file


@pytest.mark.parametrize("local", [False, True], ids=["identity", "Secret of the namespace"])
def test_the_quick_start_can_be_deleted_as_it_was_applied(site, tmp_path, local):
    """Its Secret and its identity stand before the objects that need them."""
    file = str(quickstart_with_a_secret_of_its_namespace(tmp_path) if local else QUICKSTART)
    site.kubectl("apply", "-f", file)
    condition = ("--for=condition=Ready", "terraformcluster/quickstart")
    site.kubectl("wait", *condition, "--timeout=90s")
    state = ("get", "secrets", "-l", "tfstate=true", "-o", "name")
    assert site.kubectl(*state)

    site.kubectl("delete", "--timeout=90s", "-f", file)

    assert site.kubectl("get", "-f", file, "--ignore-not-found", "-o", "name", check=False) == ""
    assert site.kubectl(*state) == ""
    told = site.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}")
    assert "Destroyed" in told
    assert "captf-creds" not in site.kubectl("get", "secrets", "-o", "name")
    assert not site.processes()


def test_a_namespace_that_is_deleted_first_says_what_can_be_done(site):
    scenarios.namespace_is_deleted_first(Story(site, "doomed"))


def test_a_killed_control_plane_goes_on_with_the_run_it_had(site):
    scenarios.manager_is_killed_while_terraform_applies(Story(site, "crash", seconds=10))


def test_a_killed_runner_is_a_failure_and_the_next_inputs_apply(site):
    scenarios.runner_is_killed_while_terraform_applies(Story(site, "runner", seconds=10))


def test_a_killed_terraform_is_a_failure_and_its_lock_is_taken_off(site):
    scenarios.terraform_is_killed_while_it_applies(Story(site, "terraform", seconds=10))


def test_a_module_that_refuses_its_variables_is_told_and_corrected_at_once(site):
    scenarios.module_refuses_its_variables(Story(site, "refused", subnets=0))


BROKEN = {
    "syntax": 'resource "terraform_data" "broken" {\n',
    "version": 'terraform {\n  required_version = ">= 99.0"\n}\n',
    "reference": 'output "broken" {\n  value = terraform_data.missing.id\n}\n',
    "provider": 'resource "terraform_data" "broken" {\n  missing = 1\n}\n',
}


def test_a_cluster_whose_module_never_worked_is_deleted_without_a_destroy(tmp_path):
    site = LocalSite(tmp_path / "site")
    for name, text in BROKEN.items():
        module = tmp_path / name
        shutil.copytree(QUICKSTART.parent / "module", module)
        (module / "broken.tf").write_text(text)
        site.add_image(f"registry.example.com/{name}/cluster:v1", module=module)
    site.start()
    try:
        for name in BROKEN:
            story = Story(site, name)
            story.replace(IMAGE, f"registry.example.com/{name}/cluster:v1")
            scenarios.module_that_never_worked_is_deleted(story)
    finally:
        site.stop()


@pytest.mark.parametrize("end", ["corrected", "deleted"])
def test_an_image_that_cannot_be_pulled_stands_in_nobodys_way(site, end):
    story = Story(site, f"image-{end}")
    story.replace(IMAGE, "registry.example.com/missing/cluster:v1")
    if end == "corrected":
        scenarios.image_that_cannot_be_pulled_is_told_and_corrected(story, IMAGE)
    else:
        scenarios.object_without_its_image_is_deleted(story)


def test_a_misspelled_variable_is_told_before_a_run_and_corrected(site):
    story = Story(site, "misspelled")
    story.replace("    subnets: 2\n", "    subnest: 2\n")
    story.create()

    def told() -> str:
        found = story.condition("DependenciesReady")
        return found.message if found is not None and found.reason == "VariablesInvalid" else ""

    eventually(told, lambda: f"it is said: {story.explain()}", 30)
    assert 'variable "subnest" is not declared' in told()
    assert 'did you mean "subnets"?' in told()
    assert story.jobs(Op.APPLY) == []

    story.set_variables(subnest=None, subnets=2)
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 1


def test_the_manager_writes_under_one_name(site):
    scenarios.manager_writes_under_one_name(Story(site, "owner"))


def test_the_retry_of_a_failure_comes_after_its_backoff_as_the_second_attempt(site):
    story = Story(site, "retry", subnets=0)
    story.create()
    eventually(lambda: scenarios.failed_apply(story), "the failure", 60)
    [failed] = story.events("JobFailed")
    assert "(60 s, 1 failure in a row)" in failed.note
    assert len(story.jobs(Op.APPLY)) == 1

    let_backoff_pass(story.door)

    eventually(lambda: len(story.jobs(Op.APPLY)) == 2, "the second attempt", 30)


def test_sigterm_interrupts_the_run_in_order_and_it_is_tried_again_at_once(site):
    story = Story(site, "term", seconds=10)
    story.create()
    story.wait_applying()
    assert site.up.terminate() == 0
    assert not site.processes()
    site.start()
    story.door = site.door()
    eventually(lambda: len(story.jobs(Op.APPLY)) == 2, "the second attempt", 30)
    # The first is marked as read once the pass that starts the second has written the object.
    eventually(
        lambda: story.jobs(Op.APPLY)[0].metadata.annotations.get(keys.INTERRUPTED) == "true",
        "the first attempt was interrupted",
        30,
    )
    _, second = story.jobs(Op.APPLY)
    # Interrupting a provisioner taints its resource, which the second attempt replaces.
    story.wait_settled()
    assert not second.metadata.annotations.get(keys.INTERRUPTED)
    assert story.no_lease_left()
    assert story.state().resources == 2


def test_a_deleted_pod_tells_its_result_before_it_goes(site):
    scenarios.pod_is_deleted_while_terraform_applies(Story(site, "deleted", seconds=20))


def test_a_drained_pod_tells_its_result_before_it_goes(site):
    (node,) = site.door().list(NODES).items
    story = Story(site, "drained", seconds=20)
    scenarios.node_is_drained_while_terraform_applies(story, node.metadata.name)


def test_a_run_that_reaches_its_deadline_says_so(site):
    scenarios.run_reaches_its_deadline(Story(site, "deadline", seconds=60))


def test_a_finished_run_leaves_its_outcome_and_nothing_secret(site):
    story = Story(site, "tidy")
    story.create()
    story.wait_settled()
    (pod,) = story.pods()
    home = site.node_data / "pods" / pod.metadata.uid
    left = {path.name for path in home.rglob("*") if path.is_file()}
    assert left <= {
        "record.json", "supervisor.json", "running.json", "exit.json", "supervisor.err", "0.log",
        "termination-log",
    }  # fmt: skip
    files = [path for path in site.node_data.rglob("*") if path.is_file()]
    assert not any(b"not-a-real-token" in path.read_bytes() for path in files)
    assert "Apply complete!" in site.kubectl("logs", "-n", "tidy", pod.metadata.name)


def test_a_tree_is_ended_while_its_supervisor_is_frozen(site):
    scenarios.supervisor_is_frozen_and_its_pod_deleted_by_force(Story(site, "frozen", seconds=40))


def test_a_deleted_job_ends_in_order_and_is_tried_again_at_once(site):
    scenarios.job_is_deleted_while_terraform_applies(Story(site, "vanished", seconds=20))


def test_a_first_apply_that_fails_half_way_comes_up_and_later_ones_are_guarded(tmp_path):
    site = LocalSite(tmp_path / "site")
    gate = tmp_path / "gate"
    add_gated_image(site, tmp_path, gate)
    site.start()
    try:
        story = Story(site, "gated")
        story.replace(IMAGE, GATED)
        scenarios.first_apply_fails_half_way(story, gate)
    finally:
        site.stop()


def test_a_reconcile_that_is_told_to_end_ends_its_run_in_order(tmp_path):
    site = LocalSite(tmp_path / "site")
    command = reconcile_slowly(site, tmp_path)
    command.start("PlanSummary")
    eventually(lambda: site.processes("apply"), "Terraform applying")

    command.signal(signal.SIGINT)

    assert command.wait(60) == 130
    assert "interrupted: runs are asked to stop" in command.output()
    told = "job/captf-c-quickstart-apply-a1-[0-9a-f]+  stopped in order in step apply"
    assert re.search(told, command.output())
    assert not site.processes()
    site.start()
    try:
        door = site.door()
        eventually(
            lambda: any(
                job.metadata.annotations.get(keys.INTERRUPTED) == "true"
                for job in door.list(JOBS, "default").items
            ),
            "the run to count as interrupted",
        )
    finally:
        site.stop()


def test_a_reconcile_whose_control_plane_is_ended_by_its_owner_says_so(tmp_path):
    site = LocalSite(tmp_path / "site")
    site.start()
    command = reconcile_slowly(site, tmp_path)
    command.start("PlanSummary")

    site.stop()

    assert command.wait(30) == 3
    assert "the control plane has ended" in command.output()
    assert "Traceback" not in command.output()


def test_a_second_ctrl_c_ends_a_reconcile_at_once_and_names_the_run_that_is_left(tmp_path):
    site = LocalSite(tmp_path / "site")
    command = reconcile_slowly(site, tmp_path)
    command.start("PlanSummary")
    eventually(lambda: site.processes("apply"), "Terraform applying")
    frozen = list(site.processes("apply"))
    for pid in frozen:  # so that no run ends between the two signals
        os.kill(pid, signal.SIGSTOP)

    command.signal(signal.SIGINT)
    command.wait_told("interrupted: ")
    command.signal(signal.SIGINT)

    assert command.wait(10) == 1
    for pid in frozen:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    assert re.search("ended at once: job/captf-c-quickstart-apply-a1-[0-9a-f]+ ", command.output())
    site.start()  # takes over what is left
    site.stop()
    eventually(lambda: not site.processes(), "nothing is left")


def test_a_reconcile_after_the_backoff_runs_what_is_due_and_reports_that(tmp_path):
    site = LocalSite(tmp_path / "site")
    gate = tmp_path / "gate"
    add_gated_image(site, tmp_path, gate)
    objects = tmp_path / "objects.yaml"
    objects.write_text(long_named(QUICKSTART.read_text().replace(IMAGE, GATED)))

    def reconcile() -> tuple[int, str]:
        command = reconcile_in(site, objects)
        command.launch()
        return command.wait(60), command.output()

    code, told = reconcile()
    assert (code, "StepFailed" in told) == (4, True), told
    gate.touch()
    code, told = reconcile()  # before the next try is due
    assert code == 4, told
    assert "the next try is due at" in told
    assert "JobCreated" not in told
    store = EmbeddedStore.open(site.data / STORE, SystemClock())
    let_backoff_pass(store.door())
    store.close()
    code, told = reconcile()
    assert code == 0, told
    assert "JobCreated: apply attempt 2" in told


def long_named(text: str) -> str:
    """The quick start with names as long as they may be; no label holds that of the object."""
    secret, identity, cluster, infrastructure = yaml.safe_load_all(text)
    cluster["metadata"]["name"] = "c" * 63
    name = infrastructure["metadata"]["name"] = f"{'o' * 250}.ab"
    cluster["spec"]["infrastructureRef"]["name"] = name
    return str(yaml.safe_dump_all([secret, identity, cluster, infrastructure]))


def let_backoff_pass(door: Door) -> None:
    """Date back the end of every Job."""
    for job in door.list(JOBS).items:
        for condition in job.status.conditions:
            condition.last_transition_time -= timedelta(minutes=10)
        door.update(JOBS, job, subresource="status")


GATED = "registry.example.com/gated/cluster:v1"


def add_gated_image(site: LocalSite, folder: Path, gate: Path) -> None:
    """The quick start's module with a resource that needs the file `gate`."""
    module = folder / "module"
    shutil.copytree(QUICKSTART.parent / "module", module)
    (module / "gate.tf").write_text(
        'resource "terraform_data" "gate" {\n'
        "  triggers_replace = [var.subnets]\n"
        f'  provisioner "local-exec" {{\n    command = "test -e {gate}"\n  }}\n}}\n'
    )
    site.add_image(GATED, module=module)


def reconcile_slowly(site: LocalSite, folder: Path) -> Captfctl:
    """`reconcile --local` of the quick start with resources that take half a minute each."""
    objects = folder / "objects.yaml"
    objects.write_text(QUICKSTART.read_text().replace("subnets: 2", "subnets: 2\n    seconds: 30"))
    return reconcile_in(site, objects)


def reconcile_in(site: LocalSite, objects: Path) -> Captfctl:
    return Captfctl(
        site.folder / "reconcile.log",
        "reconcile",
        "--local",
        f"--filename={objects}",
        f"--data={site.data}",
        f"--images={site.images}",
    )


def test_a_run_that_is_out_of_memory_says_so(tmp_path):
    """A peak shorter than any sample, of a child of Terraform."""
    site = LocalSite(tmp_path / "site")
    module = tmp_path / "module"
    shutil.copytree(QUICKSTART.parent / "module", module)
    peak = "x = bytearray(600 << 20); x[::4096] = bytes(len(x[::4096]))"
    (module / "hungry.tf").write_text(
        'resource "terraform_data" "hungry" {\n'
        f'  provisioner "local-exec" {{\n    command = "python3 -c \'{peak}\'"\n  }}\n}}\n'
    )
    site.add_image("registry.example.com/hungry/cluster:v1", module=module)
    site.start()
    try:
        story = Story(site, "hungry")
        limit = "jobs:\n    resources:\n      limits:\n        memory: 400Mi"
        story.replace(
            f"image: {IMAGE}", f"image: registry.example.com/hungry/cluster:v1\n  {limit}"
        )
        scenarios.run_is_out_of_memory(story)
    finally:
        site.stop()
