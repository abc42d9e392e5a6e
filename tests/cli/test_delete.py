"""`captfctl delete`: what it says and asks before it deletes anything."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from captfctl.cli import confirm as confirming
from captfctl.cli.deletion import show_previews
from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.embedded.plane import install
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.owner import Owner
from captfctl.model.resources import TERRAFORM_CLUSTERS
from captfctl.reconcile.deletion_preview import Fate, Preview
from tests.support.states import put_state

VPC = ("aws_vpc.main", "aws_subnet.a")


def cluster(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": TERRAFORM_CLUSTERS.api_version,
        "kind": TERRAFORM_CLUSTERS.kind,
        "metadata": {"name": name},
        "spec": {
            "source": {"image": "registry.example.com/a:v1"},
            "identityRef": {"name": "cloud"},
            **spec,
        },
    }


class Plane:
    """A control plane that is stopped, with a TerraformCluster in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with self.door() as door:
            install(door)

    def door(self) -> "Opened":
        return Opened(self.folder / "store")

    def add(self, name: str, *resources: str, **spec: Any) -> None:
        with self.door() as door:
            made = door.create(TERRAFORM_CLUSTERS.untyped(), cluster(name, **spec), "default")
            owner = Owner(TERRAFORM_CLUSTERS.kind, "default", name, made["metadata"]["uid"])
            if resources:
                put_state(door, owner, 1, resources)

    def is_there(self, name: str) -> bool:
        with self.door() as door:
            found = door.list(TERRAFORM_CLUSTERS, "default").items
        return any(one.metadata.name == name and not one.deleting for one in found)


class Opened:
    def __init__(self, store: Path) -> None:
        self._store = EmbeddedStore.open(store, SystemClock())

    def __enter__(self) -> Door:
        return self._store.door()

    def __exit__(self, *_: object) -> None:
        self._store.close()


@pytest.fixture
def plane(tmp_path: Path) -> Plane:
    return Plane(tmp_path / "data")


@pytest.fixture
def delete(captfctl, plane: Plane) -> Callable[..., Any]:
    return lambda *arguments: captfctl("delete", *arguments, "--data", str(plane.folder))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(monkeypatch) -> Iterator[Callable[[str], None]]:
    """Somebody at a terminal who types this."""

    def answer(text: str) -> None:
        monkeypatch.setattr(confirming.sys, "stdin", Terminal(f"{text}\n"))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    yield answer


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
