"""`captfctl reconcile --dry-run`."""

import json

from captfctl.kubeyaml import documents
from tests.cli.conftest import QUICKSTART

FLEET = QUICKSTART.parent / "fleet"


def test_a_cluster_that_was_never_applied_would_be_applied(captfctl):
    ended = captfctl("reconcile", "-f", str(QUICKSTART), "--dry-run", "-o", "json")

    assert ended.code == 0, ended.err
    (decision,) = json.loads(ended.out)
    assert decision["kind"] == "TerraformCluster"
    assert (decision["namespace"], decision["name"]) == ("default", "quickstart")
    assert (decision["decision"], decision["reason"]) == ("apply", "NoState")


def test_nothing_is_started_and_nothing_is_kept(captfctl, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no terraform, no kubectl

    assert captfctl("reconcile", "-f", str(QUICKSTART), "--dry-run").code == 0
    assert list(tmp_path.iterdir()) == []


def test_yaml_and_names_say_the_same_as_json(captfctl):
    as_json = captfctl("reconcile", "-f", str(QUICKSTART), "--dry-run", "-o", "json")
    as_yaml = captfctl("reconcile", "-f", str(QUICKSTART), "--dry-run", "-o", "yaml")
    names = captfctl("reconcile", "-f", str(QUICKSTART), "--dry-run", "-o", "name")

    assert [one.value for one in documents(as_yaml.out, [])] == [json.loads(as_json.out)]
    assert names.out == "terraformcluster/quickstart\n"


def test_a_missing_secret_is_what_the_apply_waits_for(captfctl, quickstart):
    file = quickstart(("  name: quickstart-credentials\n  namespace", "  name: other\n  namespace"))
    ended = captfctl("reconcile", "-f", file, "--dry-run", "-o", "json")

    (decision,) = json.loads(ended.out)
    assert decision["decision"] == "apply"
    assert "SecretNotFound" in decision["waiting"]


def test_a_paused_cluster_would_do_nothing(captfctl, quickstart):
    file = quickstart(("spec:\n  clusterNetwork", "spec:\n  paused: true\n  clusterNetwork"))
    ended = captfctl("reconcile", "-f", file, "--dry-run", "-o", "json")

    (decision,) = json.loads(ended.out)
    assert (decision["decision"], decision["reason"]) == ("none", "Paused")


def test_the_table_has_one_line_per_object(captfctl):
    ended = captfctl("reconcile", "-f", str(QUICKSTART), "--dry-run")

    heading, row = ended.out.splitlines()
    assert heading.split()[:5] == ["KIND", "NAMESPACE", "NAME", "DECISION", "REASON"]
    assert row.split()[:5] == ["TerraformCluster", "default", "quickstart", "apply", "NoState"]


def test_standard_input_is_read_once(captfctl, monkeypatch):
    import io
    import sys

    class Stdin:
        buffer = io.BytesIO((QUICKSTART / "cluster.yaml").read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin)
    ended = captfctl("reconcile", "-f", "-", "--dry-run", "-o", "name")

    assert ended.out == "terraformcluster/quickstart\n"


def test_every_kind_that_has_runs_is_told(captfctl):
    ended = captfctl("reconcile", "-f", str(FLEET), "--dry-run", "-o", "json")

    assert ended.code == 0, ended.err
    cluster, *members = json.loads(ended.out)
    assert (cluster["kind"], cluster["decision"]) == ("TerraformCluster", "apply")
    assert "waiting" not in cluster
    assert [(one["kind"], one["name"]) for one in members] == [
        *(("TerraformMachine", f"fleet-{number}") for number in (1, 2, 3)),
        ("TerraformMachinePool", "fleet-pool"),
    ]
    for member in members:
        assert member["decision"] == "apply"
        assert "WaitingForClusterInfrastructure" in member["waiting"]
