"""`captfctl approve` of a plan of a control plane that is stopped, and of files."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from captfctl.approvals.refused import Rule
from captfctl.kubeyaml import to_yaml
from captfctl.model.plan import PlanReason, TerraformPlan
from captfctl.model.resources import TERRAFORM_CLUSTERS, TERRAFORM_PLANS
from runner import wire
from tests.approvals.plans import HASH, NAMESPACE, Site, a_stopped_plane

ESCAPES = '\x1b[2Jcleared \u202e\x9b31m"'
DESTRUCTIVE = wire.Plan(
    HASH,
    create=1,
    replace=1,
    delete=2,
    resources=(f'a.b["{ESCAPES}] (create)', "c.d (replace, move)", "odd"),
    truncated=True,
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def given(data: Path, prepare: Callable[[Site], Any]) -> None:
    with a_stopped_plane(data) as site:
        prepare(site)


def harmless(site: Site) -> None:
    target = site.target()
    site.plan(target)
    site.waiting(target, "web-0")


def destructive(site: Site) -> None:
    target = site.target()
    site.plan(target, content=DESTRUCTIVE)
    site.waiting(target, "web-0")


def stored(data: Path, name: str = "web-0") -> TerraformPlan:
    with a_stopped_plane(data) as site:
        return site.stored(name)


def test_a_plan_is_shown_and_approved(captfctl, data):
    given(data, harmless)

    ended = captfctl("approve", "web-0", "--yes", "--data", str(data))

    lines = ended.out.splitlines()
    assert (ended.code, ended.err) == (0, "")
    assert lines[0].split() == ["Plan", "web-0"]
    assert lines[-1] == "terraformplan/web-0 approved by local-admin"
    assert f"Hash       {HASH}" in lines
    assert "Changes    1 to create, 0 to update, 0 to replace, 0 to delete" in lines
    assert "  create  terraform_data.disk" in lines
    assert "exactly this plan" in ended.out
    assert stored(data).spec.approved_by == "local-admin"


@pytest.mark.parametrize("named", ["terraformcluster/web", "tfc/web", "TerraformClusters/web"])
def test_an_object_can_be_named_as_kubectl_names_it(captfctl, data, named):
    given(data, harmless)

    assert captfctl("approve", "--target", named, "--yes", "--data", str(data)).code == 0
    assert stored(data).spec.approved


@pytest.mark.parametrize("kind", ["tfplan", "terraformplan.infrastructure.cluster.x-k8s.io"])
def test_a_plan_can_be_named_as_kubectl_names_it(captfctl, data, kind):
    given(data, harmless)

    assert captfctl("approve", f"{kind}/web-0", "--yes", "--data", str(data)).code == 0


def test_what_would_act_on_a_terminal_is_shown_escaped(captfctl, data):
    given(data, destructive)

    text = captfctl("approve", "web-0", "--dry-run", "--data", str(data)).out
    document = captfctl("approve", "web-0", "--dry-run", "--data", str(data), "-o", "json").out

    assert r'a.b["\x1b[2Jcleared \u202e\x9b31m"]' in text
    assert "odd" in text
    for shown in (text, document):
        assert all(char == "\n" or char.isprintable() for char in shown)
    assert json.loads(document)["summary"]["resources"][0] == f'a.b["{ESCAPES}] (create)'


def test_an_error_shows_what_would_act_on_a_terminal_escaped(captfctl, data):
    given(data, harmless)

    ended = captfctl("approve", f"web{ESCAPES}", "--data", str(data))

    assert ended.code == 1
    assert r"web\x1b[2Jcleared" in ended.err
    assert all(char == "\n" or char.isprintable() for char in ended.err)


def test_what_is_not_listed_is_counted(captfctl, data):
    given(data, destructive)

    shown = captfctl("approve", "web-0", "--dry-run", "--data", str(data)).out

    assert "  1 more not listed\n" in shown
    assert "It deletes or replaces 3 resources." in shown


def test_a_dry_run_prints_the_patch_that_approves(captfctl, data):
    given(data, harmless)

    ended = captfctl("approve", "web-0", "--dry-run", "--data", str(data))

    assert ended.code == 0
    assert "kubectl patch terraformplans web-0 -n default --type=merge" in ended.out
    assert """-p '{"spec":{"approved":true,"approvedBy":"local-admin"}}'""" in ended.out
    assert not stored(data).spec.approved


def test_a_refusal_ends_with_1_and_says_what_to_do(captfctl, data):
    given(data, destructive)

    ended = captfctl("approve", "web-0", "--yes", "--data", str(data))

    assert ended.code == 1
    assert "Error: TerraformPlan web-0 deletes or replaces resources" in ended.err
    assert "--allow-destructive" in ended.err
    assert "Changes    1 to create" in ended.out  # what is refused is shown
    assert not stored(data).spec.approved


def test_an_approval_that_is_there_already_is_no_failure(captfctl, data):
    given(data, harmless)
    captfctl("approve", "web-0", "--yes", "--data", str(data))

    ended = captfctl("approve", "web-0", "--data", str(data))

    assert ended.code == 0
    assert ended.out.endswith(
        "terraformplan/web-0 was approved by local-admin before; nothing was written.\n"
    )


def as_json(captfctl: Any, data: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    ended = captfctl("approve", *arguments, "--data", str(data), "-o", "json")
    return ended.code, json.loads(ended.out)


def test_a_program_is_told_the_same_and_the_result(captfctl, data):
    given(data, harmless)

    code, tried = as_json(captfctl, data, "web-0", "--dry-run")
    assert (code, tried["result"]) == (0, "dry-run")
    assert tried["patch"] == {"spec": {"approved": True, "approvedBy": "local-admin"}}

    code, refused = as_json(captfctl, data, "web-0", "--expect-hash", "p2:other")
    assert (code, refused["result"]) == (1, "refused")
    assert refused["refusal"]["number"] == Rule.OTHER_HASH
    assert "p2:other" in refused["refusal"]["text"]

    code, done = as_json(captfctl, data, "web-0", "--yes")
    assert (code, done["result"], done["approvedBy"]) == (0, "approved", "local-admin")
    assert done["plan"] == "web-0"
    assert done["target"] == {"kind": "TerraformCluster", "name": "web"}
    assert (done["reason"], done["planHash"], done["inputsHash"]) == ("Manual", HASH, "i1")
    assert done["summary"]["create"] == 1
    assert done["binds"] == "plan"
    assert done["destructive"] is False

    code, again = as_json(captfctl, data, "web-0")
    assert (code, again["result"], again["approvedBy"]) == (0, "already-approved", "local-admin")

    code, missing = as_json(captfctl, data, "web-7")
    assert code == 1
    assert missing.keys() == {"result", "refusal"}
    assert missing["refusal"]["number"] == Rule.NOT_FOUND


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what to approve"),
        (["web-0", "--target", "tfc/web"], "exclude each other"),
        (["--target", "web"], "KIND/NAME"),
        (["--target", "tfc/"], "KIND/NAME"),
        (["--target", "tfm/web-1"], "no plans exist for TerraformMachine objects"),
        (["--target", "deployment/web"], "KIND one of terraformcluster"),
        (["tfc/web"], "KIND one of terraformplan"),
        (["web-0", "--withdraw"], "an approval cannot be withdrawn"),
        (["web-0", "--revoke"], "an approval cannot be withdrawn"),
        (["web-0", "-f", "x.yaml"], "--by is missing"),
        (["web-0", "-f", "x.yaml", "--by", "alice", "--kubeconfig", "k"], "-f reads files only"),
    ],
)
def test_a_command_line_that_makes_no_sense_ends_with_2(captfctl, data, arguments, said):
    more = [] if "-f" in arguments else ["--data", str(data)]

    ended = captfctl("approve", *arguments, *more)

    assert ended.code == 2
    assert said in ended.err
    assert ended.out == ""


def test_the_first_command_on_a_machine_says_that_there_is_no_control_plane(captfctl, data):
    ended = captfctl("approve", "web-0", "--data", str(data))

    assert ended.code == 3
    assert "--kubeconfig" in ended.err


# At a terminal.


def test_a_destructive_plan_is_approved_by_typing_its_name(captfctl, data, typed):
    given(data, destructive)
    typed("web-0")

    ended = captfctl("approve", "web-0", "--data", str(data))

    assert ended.code == 0
    assert ended.err == "Type web-0 to approve what it destroys: "
    assert stored(data).spec.approved


@pytest.mark.parametrize(
    ("prepare", "answer"), [(destructive, "y"), (destructive, ""), (harmless, "n"), (harmless, "")]
)
def test_any_other_answer_approves_nothing(captfctl, data, typed, prepare, answer):
    given(data, prepare)
    typed(answer)

    ended = captfctl("approve", "web-0", "--data", str(data))

    assert ended.code == 1
    assert "not confirmed" in ended.err
    assert not stored(data).spec.approved


def test_nobody_is_asked_about_a_plan_that_goes_elsewhere(captfctl, data, typed, monkeypatch):
    given(data, harmless)
    typed("y")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)

    ended = captfctl("approve", "web-0", "--data", str(data))

    assert ended.code == 1
    assert "no terminal" in ended.err
    assert not stored(data).spec.approved


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_terminal(data, tmp_path, closed):
    given(data, harmless)
    command = f'exec "{sys.executable}" -c "from captfctl.cli import main; main()" "$@" {closed}'
    arguments = ("captfctl", "approve", "web-0", "--data", str(data))
    ended = subprocess.run(
        ["sh", "-c", command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert "defect" not in ended.stderr
    assert ("no terminal" in ended.stderr) == ("2>&-" not in closed)
    assert not stored(data).spec.approved


def test_who_is_asked_sees_the_plan_even_where_a_program_reads_the_answer(
    captfctl, data, typed, monkeypatch
):
    given(data, harmless)
    typed("y")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)

    ended = captfctl("approve", "web-0", "--data", str(data), "-o", "json")

    assert ended.code == 0
    assert "terraform_data.disk" in ended.err
    assert ended.err.endswith("Approve it? [y/N] ")
    assert json.loads(ended.out)["result"] == "approved"


# From files.


def described(tmp_path: Path, data: Path, prepare: Callable[[Site], Any]) -> str:
    """Everything in the store as a file, as `kubectl get -o yaml` would have written it."""
    with a_stopped_plane(data) as site:
        prepare(site)
        documents = [
            site.manager.get(TERRAFORM_CLUSTERS.untyped(), "web", NAMESPACE),
            site.manager.get(TERRAFORM_PLANS.untyped(), "web-0", NAMESPACE),
        ]
    file = tmp_path / "objects.yaml"
    file.write_text("---\n".join(map(to_yaml, documents)))
    return str(file)


def test_a_plan_in_files_is_checked_and_the_files_stay_as_they_are(captfctl, tmp_path, data):
    file = described(tmp_path, data, harmless)
    before = Path(file).read_text()

    ended = captfctl("approve", "--target", "tfc/web", "-f", file, "--by", "alice")

    assert ended.code == 0, ended.err
    assert '"approvedBy":"alice"' in ended.out
    assert "nothing was written" in ended.out
    assert Path(file).read_text() == before


def test_a_plan_in_files_is_refused_as_one_of_a_cluster(captfctl, tmp_path, data):
    def moot(site: Site) -> None:
        site.plan(site.target(), reason=PlanReason.DESTRUCTIVE)

    ended = captfctl("approve", "web-0", "-f", described(tmp_path, data, moot), "--by", "alice")

    assert ended.code == 1
    assert "spec.applyPolicy of the cluster is now Manual" in ended.err


def test_a_plan_in_files_may_be_one_that_somebody_else_approved(captfctl, tmp_path, data):
    def by_alice(site: Site) -> None:
        site.plan(site.target())
        approval = {"spec": {"approved": True, "approvedBy": "alice"}}
        door = site.store.door(user={"username": "alice"})
        door.patch(TERRAFORM_PLANS, "web-0", NAMESPACE, approval)

    ended = captfctl("approve", "web-0", "-f", described(tmp_path, data, by_alice), "--by", "bob")

    assert ended.code == 0, ended.err
    assert "was approved by alice before" in ended.out
