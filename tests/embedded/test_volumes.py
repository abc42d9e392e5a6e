"""Volumes as directories (local-mode.md: Volumes of a pod)."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.embedded.agent import ApiAccess
from captfctl.embedded.agent.tokens import Tokens
from captfctl.embedded.agent.volumes import (
    File,
    Files,
    NotMounted,
    Unsupported,
    VolumeSources,
    write_files,
)
from captfctl.model.core import Pod, Volume
from captfctl.model.resource import Document
from captfctl.model.resources import CONFIG_MAPS, SECRETS
from tests.embedded.support import create, new_store


@pytest.fixture
def door() -> Iterator[Door]:
    store = new_store()
    yield store.door()
    store.close()


def files(door: Door, tmp_path: Path, volume: Document) -> Files | None:
    pod = Pod()
    pod.metadata.namespace, pod.metadata.name = "default", "p"
    pod.metadata.labels = {"b": "2", "a": "1"}
    token = tmp_path / "token"
    token.write_text("shared\n")
    access = ApiAccess(server="https://127.0.0.1:1", ca_path=token, token_path=token)
    sources = VolumeSources(door, pod, Tokens(door, pod, access, SystemClock()), b"own ca")
    import msgspec

    return sources.files(msgspec.convert({"name": "v", **volume}, Volume))


def test_an_empty_directory_has_no_files(door: Door, tmp_path: Path) -> None:
    assert files(door, tmp_path, {"emptyDir": {}}) is None


def test_a_restores_chunks_are_projected_to_their_numbers(door: Door, tmp_path: Path) -> None:
    create(door, SECRETS, {"metadata": {"name": "run"}, "stringData": {"main.tf.json": "{}"}})
    for number in range(2):
        metadata = {"name": f"chunk-{number}"}
        create(door, SECRETS, {"metadata": metadata, "stringData": {"tfstate": f"part {number}"}})
    sources = [{"secret": {"name": "run"}}]
    sources += [
        {"secret": {"name": f"chunk-{n}", "items": [{"key": "tfstate", "path": f"restore/{n}"}]}}
        for n in range(2)
    ]
    found = files(door, tmp_path, {"projected": {"defaultMode": 0o440, "sources": sources}})
    assert found == {
        "main.tf.json": File(b"{}", 0o440),
        "restore/0": File(b"part 0", 0o440),
        "restore/1": File(b"part 1", 0o440),
    }
    assert found is not None
    write_files(tmp_path / "config", found)
    assert (tmp_path / "config" / "restore" / "1").read_text() == "part 1"


def test_the_volume_that_admission_adds_has_token_ca_and_namespace(
    door: Door, tmp_path: Path
) -> None:
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    assert files(door, tmp_path, {"projected": {"sources": sources}}) == {
        "token": File(b"shared", 0o644),
        "ca.crt": File(b"own ca", 0o644),
        "namespace": File(b"default", 0o644),
    }


def test_keys_can_be_chosen_renamed_and_given_modes(door: Door, tmp_path: Path) -> None:
    create(door, CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}})
    items = [{"key": "a", "path": "x/y", "mode": 0o400}]
    found = files(door, tmp_path, {"configMap": {"name": "c", "items": items}})
    assert found == {"x/y": File(b"1", 0o400)}


@pytest.mark.parametrize("kind", ["secret", "configMap"])
def test_what_is_missing_is_waited_for_unless_optional(
    door: Door, tmp_path: Path, kind: str
) -> None:
    name = {"secret": "secretName", "configMap": "name"}[kind]
    with pytest.raises(NotMounted, match='"none" not found'):
        files(door, tmp_path, {kind: {name: "none"}})
    assert files(door, tmp_path, {kind: {name: "none", "optional": True}}) == {}


def test_a_missing_key_is_waited_for(door: Door, tmp_path: Path) -> None:
    create(door, SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "1"}})
    items = [{"key": "key", "path": "key"}]
    with pytest.raises(NotMounted, match="no key key"):
        files(door, tmp_path, {"secret": {"secretName": "s", "items": items}})


def test_other_kinds_of_volume_are_refused(door: Door, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="volume v"):
        files(door, tmp_path, {"hostPath": {"path": "/etc"}})


def test_new_content_replaces_the_old_in_one_step(tmp_path: Path) -> None:
    volume = tmp_path / "v"
    write_files(volume, {"a": File(b"1", 0o440), "b": File(b"2", 0o640)})
    first = (volume / "..data").resolve()
    assert (volume / "a").is_symlink()
    assert stat.S_IMODE((volume / "b").stat().st_mode) == 0o640
    write_files(volume, {"a": File(b"3", 0o440), "c": File(b"4", 0o440)})
    assert (volume / "a").read_text() == "3"
    assert (volume / "..data").resolve() != first
    assert not first.exists()
    assert sorted(p.name for p in volume.iterdir() if not p.name.startswith("..")) == ["a", "c"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "..data", ""])
def test_a_path_that_leaves_the_volume_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(Unsupported, match="not allowed"):
        write_files(tmp_path / "v", {path: File(b"", 0o644)})
    assert not (tmp_path / "v").exists()
