"""Where a cgroup can limit a container's memory (local-mode.md: Memory limits)."""

from pathlib import Path

import pytest

from captfctl.embedded.supervisor.memory import Cgroup, find_parent


def cgroups(root: Path, own: str, enabled: dict[str, str]) -> Path:
    (root / own.lstrip("/")).mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory pids\n")
    for path, controllers in enabled.items():
        (root / path.lstrip("/") / "cgroup.subtree_control").write_text(controllers + "\n")
    membership = root.parent / "membership"
    membership.write_text(f"1:name=systemd:/x\n0::{own}\n")
    return membership


def test_the_nearest_cgroup_above_with_the_memory_controller_is_taken(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    root.mkdir()
    own = "/user.slice/user@1.service/app.slice/terminal.scope"
    enabled = {
        "/": "cpu memory",
        "/user.slice/user@1.service": "cpu memory pids",
        "/user.slice/user@1.service/app.slice": "cpu pids",
    }
    membership = cgroups(root, own, enabled)
    assert find_parent(root, membership) == root / "user.slice/user@1.service"


def test_without_version_2_or_its_memory_controller_there_is_none(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    root.mkdir()
    membership = cgroups(root, "/a", {"/": "cpu"})
    assert find_parent(root, membership) is None
    (root / "cgroup.controllers").unlink()
    assert find_parent(root, membership) is None
    membership.write_text("1:memory:/x\n")
    assert find_parent(root, membership) is None


def version_1(root: Path, *paths: str) -> None:
    for path in paths:
        (root / "memory" / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        (root / "memory" / path.lstrip("/") / "memory.limit_in_bytes").write_text("9223372\n")


@pytest.mark.parametrize(
    ("own", "expected"), [("/a/b", "memory/a/b"), ("/not/seen/here", "memory")]
)
def test_of_version_1_our_own_cgroup_is_taken(tmp_path: Path, own: str, expected: str) -> None:
    root, membership = tmp_path / "cgroup", tmp_path / "membership"
    version_1(root, "/", "/a/b")
    (root / "unified").mkdir()
    membership.write_text(f"4:memory:{own}\n1:name=systemd:/\n0::/\n")
    assert find_parent(root, membership) == root / expected


def test_a_cgroup_of_version_1_is_limited_and_tells_of_its_kills(tmp_path: Path) -> None:
    version_1(tmp_path, "/")
    (tmp_path / "memory" / "captf-x").mkdir()
    group = Cgroup(tmp_path / "memory", "captf-x", 1 << 20)
    path = tmp_path / "memory" / "captf-x"
    assert (path / "memory.limit_in_bytes").read_text() == str(1 << 20)
    assert (path / "memory.memsw.limit_in_bytes").read_text() == str(1 << 20)
    (path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert group.out_of_memory
    (path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
    assert not group.out_of_memory


def test_a_cgroup_is_limited_and_tells_of_its_kills(tmp_path: Path) -> None:
    group = Cgroup(tmp_path, "captf-x", 1 << 20)
    path = tmp_path / "captf-x"
    assert (path / "memory.max").read_text() == str(1 << 20)
    (path / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert group.out_of_memory
    (path / "memory.events").write_text("low 0\noom 0\noom_kill 0\n")
    assert not group.out_of_memory


def test_where_no_cgroup_may_be_made_that_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Cgroup(tmp_path / "none", "captf-x", 1)
