"""`captfctl restore`: what it shows, asks and writes."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from captfctl.kubeyaml import to_yaml
from captfctl.model import keys
from captfctl.model.resources import SECRETS, TERRAFORM_CLUSTERS
from tests.cli.plane import Plane
from tests.support.states import TAKEN, put_backup

NEW = ("aws_vpc.main", "aws_subnet.a", "aws_subnet.b")
OLD = NEW[:2]
TARGET = "terraformcluster/prod"


@pytest.fixture
def restore(captfctl, plane: Plane) -> Callable[..., Any]:
    """Of a cluster whose state has grown since its one backup of serial 5."""
    plane.add("prod", *NEW)
    with plane.door() as door:
        put_backup(door, plane.owner(door, "prod"), 5, OLD)
    return lambda *arguments: captfctl("restore", *arguments, "--data", str(plane.folder))


def asked_for(plane: Plane) -> str | None:
    with plane.door() as door:
        annotations = door.get(TERRAFORM_CLUSTERS, "prod", "default").metadata.annotations
    return annotations.get(keys.RESTORE_STATE)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (TARGET,),
        (TARGET, "--list", "--latest"),
        (TARGET, "--serial", "5", "--cancel"),
        (TARGET, "--serial", "x"),
        (TARGET, "--serial", "0"),
        (TARGET, "--serial=-1"),
        (TARGET, "--serial", "1.5"),
        ("secret/prod", "--list"),
        ("cluster/prod", "--list"),
        ("prod", "--list"),
        (TARGET, "--list", "-o", "yaml"),
        (TARGET, "--list", "-f", "x.yaml"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(restore, plane: Plane, arguments):
    assert restore(*arguments).code == 2
    assert asked_for(plane) is None


def test_an_object_that_does_not_exist_is_told(restore):
    ended = restore("terraformcluster/other", "--list")
    assert ended.code == 1
    assert "not found" in ended.err


def test_the_list_in_a_pipe_has_one_line_for_each_backup(restore, plane: Plane):
    with plane.door() as door:
        owner = plane.owner(door, "prod")
        put_backup(door, owner, 1, NEW, taken=TAKEN + timedelta(hours=1))
        put_backup(door, owner, 4, OLD, chunks=2, without=1, taken=TAKEN - timedelta(hours=1))
    heading, empty, columns, *rows = restore(TARGET, "--list").out.splitlines()
    assert heading.startswith("terraformcluster/prod: state of serial 1, 3 resources, lineage ")
    assert empty == ""
    assert columns.split()[:5] == ["SERIAL", "TAKEN", "SIZE", "RESOURCES", "FORGETS"]
    assert [row.split()[0] for row in rows] == ["1", "5", "4"]
    assert rows[0].endswith("current")
    assert rows[1].split()[4:6] == ["2", "1"]
    assert "incomplete: chunk 1 of 2 is missing" in rows[2]


def test_an_object_without_backups_has_an_empty_list(restore, plane: Plane):
    plane.add("new")
    ended = restore("terraformcluster/new", "--list")
    assert ended.code == 0
    assert "There are no backups" in ended.out


def test_json_of_the_list_has_everything(restore):
    document = json.loads(restore(TARGET, "--list", "-o", "json").out)
    assert (document["result"], document["state"]["resources"]) == ("listed", 3)
    (backup,) = document["backups"]
    assert backup["serial"] == 5
    assert backup["takenAt"] == "2026-03-01T10:00:00Z"
    assert (backup["resources"], backup["forgets"], backup["current"]) == (2, 1, False)
    assert (backup["complete"], backup["damage"], backup["chunks"]) == (True, "", 1)
    assert len(backup["digest"]) == 64


def test_a_restore_is_shown_and_asked_for_by_name(restore, plane: Plane, typed):
    typed("prod")
    ended = restore(TARGET, "--serial", "5")
    assert ended.code == 0, ended.err
    assert "  forgets  1 resource that goes on, and nothing manages it" in ended.out
    assert "    aws_subnet.b" in ended.out
    assert "Type prod to put this state back: " in ended.err
    assert asked_for(plane) == "5"


def test_another_name_is_no_agreement(restore, plane: Plane, typed):
    typed("production")
    ended = restore(TARGET, "--serial", "5")
    assert ended.code == 1
    assert asked_for(plane) is None


def test_without_a_terminal_it_needs_yes(restore, plane: Plane):
    ended = restore(TARGET, "--latest")
    assert ended.code == 1
    assert "--yes" in ended.err
    assert asked_for(plane) is None
    assert restore(TARGET, "--latest", "--yes").code == 0
    assert asked_for(plane) == "5"


def test_asking_twice_and_taking_it_back(restore, plane: Plane):
    restore(TARGET, "--latest", "--yes")
    again = restore(TARGET, "--serial", "5", "--yes")
    assert (again.code, "is asked for already" in again.out) == (0, True)
    back = restore(TARGET, "--cancel")
    assert (back.code, asked_for(plane)) == (0, None)
    nothing = restore(TARGET, "--cancel")
    assert (nothing.code, "nothing was written" in nothing.out) == (0, True)


def test_a_dry_run_prints_the_patch(restore, plane: Plane):
    ended = restore(TARGET, "--serial", "5", "--dry-run")
    assert ended.code == 0
    assert "kubectl patch terraformclusters prod -n default --type=merge" in ended.out
    assert asked_for(plane) is None


def test_json_of_a_refusal_has_its_number(restore):
    ended = restore(TARGET, "--serial", "4", "-o", "json", "--yes")
    assert ended.code == 1
    document = json.loads(ended.out)
    assert (document["result"], document["refusal"]["number"]) == ("refused", 3)
    assert "serial 4" in document["refusal"]["text"]


def test_json_of_a_request_has_what_is_forgotten(restore):
    document = json.loads(restore(TARGET, "--serial", "5", "-o", "json", "--yes").out)
    assert (document["result"], document["serial"]) == ("requested", "5")
    assert document["forgets"] == ["aws_subnet.b"]
    assert document["patch"]["metadata"]["annotations"] == {keys.RESTORE_STATE: "5"}


def test_files_are_looked_at_and_stay_as_they_are(restore, captfctl, plane: Plane, tmp_path: Path):
    with plane.door() as door:
        items = door.list(SECRETS.untyped(), "default").items
        items.append(door.get(TERRAFORM_CLUSTERS.untyped(), "prod", "default"))
    file = tmp_path / "dump.yaml"
    file.write_text(to_yaml({"apiVersion": "v1", "kind": "List", "items": items}))
    before = file.read_text()
    listed = captfctl("restore", TARGET, "--list", "-f", str(file))
    assert listed.code == 0, listed.err
    assert "2026-03-01T10:00:00Z" in listed.out
    ended = captfctl("restore", TARGET, "--serial", "5", "--yes", "-f", str(file))
    assert ended.code == 0, ended.err
    assert "Nothing was written" in ended.out
    assert file.read_text() == before


def test_nothing_of_a_state_is_printed_but_its_addresses(restore):
    for arguments in (("--list",), ("--serial", "5", "--dry-run")):
        for output in ("text", "json"):
            assert "canary" not in restore(TARGET, *arguments, "-o", output).out


def test_what_stands_in_a_backup_moves_no_cursor(restore, plane: Plane):
    with plane.door() as door:
        owner = plane.owner(door, "prod")
        put_backup(door, owner, 6, ("a.b\x1b[2J",), BACKUP_SOURCE_JOB="x\x1b[2J", inputs_hash="")
    for arguments in (("--list",), ("--serial", "6", "--dry-run")):
        assert "\x1b" not in restore(TARGET, *arguments).out
