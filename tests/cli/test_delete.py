"""`captfctl delete`: what it says and asks before it deletes anything."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from captfctl.cli.delete_objects import Replaced, Seen, Things, delete_seen, look_at
from captfctl.cli.deletion import show_previews
from captfctl.cli.targets import Named
from captfctl.model.resources import TERRAFORM_CLUSTERS
from captfctl.reconcile.deletion_preview import Fate, Preview
from tests.cli.plane import Plane, cluster

VPC = ("aws_vpc.main", "aws_subnet.a")


@pytest.fixture
def delete(captfctl, plane: Plane) -> Callable[..., Any]:
    return lambda *arguments: captfctl("delete", *arguments, "--data", str(plane.folder))


def test_without_a_terminal_nothing_is_deleted_unasked(delete, plane: Plane):
    plane.add("prod", *VPC)
    ended = delete("terraformcluster/prod")
    assert ended.code == 1
    assert ended.out.splitlines() == [
        "terraformcluster/prod: 2 resources will be destroyed",
        "  aws_vpc.main",
        "  aws_subnet.a",
    ]
    assert "--yes" in ended.err
    assert plane.is_there("prod")


def test_another_name_is_no_agreement(delete, plane: Plane, typed):
    plane.add("prod", *VPC)
    typed("production")
    ended = delete("tfc/prod")
    assert ended.code == 1
    assert "Type prod to delete it: " in ended.err
    assert "nothing was changed" in ended.err
    assert plane.is_there("prod")


def test_what_was_created_while_a_person_was_asked_is_not_deleted(
    delete, plane: Plane, typed, monkeypatch
):
    """The answer was given for its predecessor, which had nothing to lose any more."""
    plane.add("prod", "aws_vpc.old")
    typed("prod")
    answer = sys.stdin

    class Meanwhile:
        isatty = answer.isatty

        @staticmethod
        def readline() -> str:
            with plane.door() as door:
                door.delete(TERRAFORM_CLUSTERS, "prod", "default")
                door.create(TERRAFORM_CLUSTERS.untyped(), cluster("prod"), "default")
            return answer.readline()

    monkeypatch.setattr(sys, "stdin", Meanwhile)
    ended = delete("terraformcluster/prod")
    assert ended.code == 1
    assert "is another object by now" in ended.err
    assert plane.is_there("prod")


def test_an_object_of_files_that_was_not_there_is_not_deleted(plane: Plane):
    with plane.door() as door:
        things = Things([Named(TERRAFORM_CLUSTERS, "default", "prod")], door=door)
        assert look_at(door, things) == Seen([], {})


def test_in_a_cluster_too_only_what_was_asked_about_is_deleted(plane: Plane):
    plane.add("prod")
    thing = Named(TERRAFORM_CLUSTERS, "default", "prod")
    with plane.door() as door:
        seen = look_at(door, Things([thing]))
        door.delete(TERRAFORM_CLUSTERS, "prod", "default")
        door.create(TERRAFORM_CLUSTERS.untyped(), cluster("prod"), "default")
        with pytest.raises(Replaced):
            delete_seen(door, thing, seen)
        delete_seen(door, thing, look_at(door, Things([thing])))
    assert not plane.is_there("prod")


def test_a_protected_object_is_refused_before_anything_is_asked(delete, plane: Plane):
    plane.add("prod", *VPC, deletionProtection=True)
    for more in ((), ("--yes",), ("--dry-run",)):
        ended = delete("terraformcluster/prod", *more)
        assert ended.code == 1
        assert "terraformcluster/prod is protected" in ended.err
        assert "kubectl patch terraformclusters prod -n default" in ended.err
    assert plane.is_there("prod")


def test_a_dry_run_only_tells(delete, plane: Plane):
    plane.add("prod", *VPC)
    ended = delete("terraformclusters.infrastructure.cluster.x-k8s.io/prod", "--dry-run")
    assert ended.code == 0
    assert "2 resources will be destroyed" in ended.out
    assert plane.is_there("prod")


def test_json_has_all_that_would_be_lost(delete, plane: Plane):
    names = [f"aws_subnet.s{n}" for n in range(300)]
    plane.add("prod", *names, deletionPolicy="Retain")
    document = json.loads(delete("terraformcluster/prod", "--dry-run", "-o", "json").out)
    assert (document["destroyed"], document["forgotten"]) == (0, 300)
    (one,) = document["objects"]
    assert (one["fate"], one["resources"]) == ("forgotten", names)


def test_an_object_that_does_not_exist_is_told(delete):
    ended = delete("terraformcluster/prod", "--yes")
    assert ended.code == 1
    assert "not found" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("prod",),
        ("secret/prod",),
        ("terraformcluster/",),
        ("terraformcluster/a/b",),
        ("terraformcluster/prod", "-o", "json"),
        ("terraformcluster/prod", "--local", "--kubeconfig", "x"),
        ("terraformcluster/prod", "-f", "x.yaml"),
        ("-f", "x.yaml"),
        ("-f", "x.yaml", "--kubeconfig", "x"),
    ],
)
def test_what_cannot_be_meant_is_refused(delete, arguments):
    assert delete(*arguments).code == 2


def test_files_tell_what_they_hold(captfctl, quickstart):
    ended = captfctl("delete", "-f", quickstart(), "--dry-run")
    assert ended.code == 0
    assert "terraformcluster/quickstart: nothing to destroy" in ended.out


def one(name: str, *resources: str, kind: str = "TerraformMachine", **more: Any) -> Preview:
    fate = more.pop("fate", Fate.DESTROYED)
    return Preview(
        kind=kind, namespace="default", name=name, fate=fate, resources=resources, **more
    )


def test_long_lists_are_cut(capsys):
    many = [f"a.n{n}" for n in range(500)]
    show_previews([one(f"m{n:02}", *many) for n in range(50)])
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "50 objects: 25000 resources will be destroyed"
    assert "  … and 480 more" in out
    assert "… and 20 more objects with 10000 resources" in out
    assert len(out.splitlines()) < 140


def test_a_total_tells_that_some_resources_are_not_known(capsys):
    show_previews([one("a", "aws_vpc.main"), replace(one("b"), resources=None)])
    out = capsys.readouterr().out
    assert out.splitlines()[0] == (
        "2 objects: 1 resource will be destroyed; of 1 the resources are not known"
    )


def test_a_list_is_not_cut_for_one_line(capsys):
    show_previews([one("m", *(f"a.n{n}" for n in range(21)))])
    out = capsys.readouterr().out
    assert "a.n20" in out
    assert "more" not in out


def test_nothing_of_a_state_moves_the_cursor(capsys):
    show_previews([one("m", "a.b\x1b[2J\u202e\n"), one("n", fate=Fate.HELD, why="x\x1b[2J")])
    out = capsys.readouterr().out
    assert "  a.b\\x1b[2J\\u202e\\n\n" in out
    assert "\x1b" not in out
