"""Who may do what to a plan on the real API server: the table that the embedded one keeps, too."""

import contextlib
import copy
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from captfctl.cluster.errors import Forbidden, Invalid
from captfctl.cluster.live import LiveDoor
from captfctl.install.manifests import manifests
from captfctl.install.permissions import APPROVER_ROLE
from captfctl.install.workload import InstallOptions, manager_user
from captfctl.model.resource import Document
from captfctl.model.resources import TERRAFORM_CLUSTERS, TERRAFORM_PLANS
from tests.controlplane.processes import ControlPlane, running
from tests.e2e.site import CAPTFCTL, eventually, kubectl
from tests.support.plan_admission import (
    ALICE,
    BOB,
    CREATES,
    FORGED,
    LABEL,
    MANAGER,
    PATCHES,
    Created,
    Patched,
    approval,
    label,
    plan,
)

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

OPTIONS = InstallOptions(image="registry.example.com/captfctl:v1")
PLANS = TERRAFORM_PLANS.untyped()


class Users:
    """Doors of users who may do everything, as far as roles are concerned; and of one who may only
    approve."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self._folder = plane, folder
        self._doors: dict[str, LiveDoor] = {}

    def __getitem__(self, user: str) -> LiveDoor:
        return self.door(user, "system:masters")

    def door(self, user: str, *groups: str) -> LiveDoor:
        name = manager_user(OPTIONS) if user == MANAGER else user
        found = self._doors.get(f"{name} {groups}")
        if found is None:
            path = self.kubeconfig(name, *groups)
            found = self._doors[f"{name} {groups}"] = LiveDoor.from_kubeconfig(path)
        return found

    def kubeconfig(self, user: str, *groups: str) -> Path:
        config = msgspec.yaml.decode(self.plane.kubeconfig.read_bytes())
        config["users"][0]["user"] |= {"as": user, "as-groups": list(groups)}
        path = self._folder / f"{uuid.uuid4().hex}.kubeconfig"
        path.write_bytes(msgspec.json.encode(config))
        return path

    def close(self) -> None:
        for door in self._doors.values():
            door.close()


@pytest.fixture(scope="module")
def users(assets, tmp_path_factory) -> Iterator[Users]:
    folder = tmp_path_factory.mktemp("plans")
    plane = ControlPlane(assets, folder / "plane", scheduler=False)
    with running(plane), contextlib.closing(Users(plane, folder)) as users:
        kept = [d for d in manifests(OPTIONS) if d["kind"] != "Deployment"]
        text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": kept}).decode()
        kubectl(plane.kubeconfig, "apply", "--server-side", "-f", "-", text=text)
        kubectl(plane.kubeconfig, "wait", "--for=condition=Established", "crd", "--all")
        role = ["create", "clusterrolebinding", "bob", f"--clusterrole={APPROVER_ROLE}"]
        kubectl(plane.kubeconfig, *role, f"--user={BOB}")
        eventually(lambda: _in_force(users), "the policy of plans is in force")
        yield users


def _in_force(users: Users) -> bool:
    """A server evaluates a new policy a moment after it was stored."""
    try:
        users[ALICE].create(PLANS, named(plan(phase="Done")), "default")
    except Invalid as refused:
        return LABEL in str(refused)
    return False


def named(document: Document) -> Document:
    """The plan under a name of its own: the tests share the server."""
    document = copy.deepcopy(document)
    document["metadata"]["name"] = f"web-{uuid.uuid4().hex[:10]}"
    return document


def stored(users: Users, case: Patched) -> str:
    taken = users[MANAGER].create(PLANS, named(plan(phase=case.phase)), "default")
    name: str = taken["metadata"]["name"]
    if case.approved_by:
        by = case.approved_by
        users[by].patch(PLANS, name, "default", approval(by))
    return name


def one_line(error: pytest.ExceptionInfo[Invalid]) -> str:
    said = str(error.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize("case", CREATES.values(), ids=CREATES)
def test_a_user_may_or_may_not_create(users: Users, case: Created):
    if not case.said:
        users[case.by].create(PLANS, named(case.document), "default")
        return
    with pytest.raises(Invalid) as refused:
        users[case.by].create(PLANS, named(case.document), "default")
    assert case.said in one_line(refused)


@pytest.mark.parametrize("case", PATCHES.values(), ids=PATCHES)
def test_a_user_may_or_may_not_patch(users: Users, case: Patched):
    name = stored(users, case)
    if not case.said:
        users[case.by].patch(PLANS, name, "default", case.patch)
        return
    with pytest.raises(Invalid) as refused:
        users[case.by].patch(PLANS, name, "default", case.patch)
    assert case.said in one_line(refused)


def test_everything_that_is_wrong_with_a_request_is_told_at_once(users: Users):
    name = stored(users, Patched(by="", patch={}, phase="Failed"))

    with pytest.raises(Invalid) as refused:
        users[BOB].patch(PLANS, name, "default", {**approval(ALICE), **label("Pending")})

    said = one_line(refused)
    assert FORGED in said
    assert "spec.approved: the plan is Failed" in said
    assert LABEL in said


def test_a_status_is_written_without_the_label_of_the_phase(users: Users):
    name = stored(users, Patched(by="", patch={}))

    users[ALICE].patch(
        PLANS,
        name,
        "default",
        {"status": {"phase": "Pending"}, **label("Applied")},
        subresource="status",
    )

    assert users[ALICE].get(TERRAFORM_PLANS, name, "default").phase == "Pending"


def test_the_approvers_role_is_enough_to_approve_and_for_nothing_else(users: Users):
    name = stored(users, Patched(by="", patch={}))
    bob = users.door(BOB)

    bob.patch(PLANS, name, "default", approval(BOB))

    assert bob.get(TERRAFORM_PLANS, name, "default").spec.approved_by == BOB
    assert bob.list(TERRAFORM_PLANS, "default").items
    with pytest.raises(Forbidden):
        bob.create(PLANS, named(plan()), "default")
    with pytest.raises(Forbidden):
        bob.delete(PLANS, name, "default")
    with pytest.raises(Forbidden):
        bob.patch(PLANS, name, "default", {"status": {"phase": "Applied"}}, subresource="status")
    with pytest.raises(Forbidden):
        bob.list(TERRAFORM_CLUSTERS, "default")


def approve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [CAPTFCTL, "approve", "-n", "default", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_approves_as_the_user_of_the_kubeconfig_who_may_do_nothing_else(users: Users):
    name = stored(users, Patched(by="", patch={}))
    config = f"--kubeconfig={users.kubeconfig(BOB)}"

    as_alice = approve(name, "--yes", f"--by={ALICE}", config)
    done = approve(name, "--yes", config)
    again = approve(name, config)

    assert (as_alice.returncode, done.returncode, again.returncode) == (1, 0, 0)
    assert f"you are {BOB}, so you cannot approve as {ALICE}" in as_alice.stderr
    assert "you may not read the TerraformCluster" in done.stdout
    assert f"terraformplan/{name} approved by {BOB}" in done.stdout
    assert users[ALICE].get(TERRAFORM_PLANS, name, "default").spec.approved_by == BOB


def test_the_command_tells_who_may_not_approve_what_is_missing(users: Users):
    role = ["create", "clusterrole", "reader", "--verb=get,list"]
    kubectl(users.plane.kubeconfig, *role, f"--resource={TERRAFORM_PLANS.name}")
    binding = ["create", "clusterrolebinding", "carol", "--clusterrole=reader", "--user=carol"]
    kubectl(users.plane.kubeconfig, *binding)
    name = stored(users, Patched(by="", patch={}))

    config, told = f"--kubeconfig={users.kubeconfig('carol')}", [""]

    def refused() -> bool:
        told[0] = approve(name, "--yes", config).stderr
        return "captf-plan-approver-role" in told[0]

    eventually(refused, lambda: f"the role that is missing is named: {told[0]}", 20)
