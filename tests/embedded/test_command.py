"""Commands, paths and references of a container on this machine
(local-mode.md: Volumes of a pod)."""

from pathlib import Path

import pytest

from captfctl.embedded.agent.command import Paths, arguments, copy_target, expand, paths_of
from captfctl.embedded.agent.directory import PodDirectory, Record
from captfctl.embedded.images import Image
from captfctl.model.core import Container, VolumeMount


@pytest.fixture
def directory(tmp_path: Path) -> PodDirectory:
    return PodDirectory(tmp_path / "pod")


def image(providers: Path | None = None) -> Image:
    return Image(
        reference="a/b:v1",
        digest="0" * 64,
        module=Path("/images/0"),
        providers=providers,
        runtime=Path("/usr/local/bin/terraform"),
    )


def runner(*args: str) -> Container:
    return Container(
        name="source",
        command=["/captf/bin/runner", "run"],
        args=list(args),
        volume_mounts=[
            VolumeMount(name="runner", mount_path="/captf/bin"),
            VolumeMount(name="work", mount_path="/captf/work"),
            VolumeMount(name="tmp", mount_path="/tmp"),
        ],
    )


def places(directory: PodDirectory) -> dict[str, Path]:
    return {
        "runner": directory.inside("/captf/bin"),
        "work": directory.inside("/captf/work"),
        "tmp": directory.inside("/tmp"),
    }


def argv(container: Container, directory: PodDirectory, **more: object) -> list[str]:
    paths = paths_of(container, places(directory), directory, image(**more))  # type: ignore[arg-type]
    return arguments(container, {}, paths, directory)


def test_the_runners_paths_become_those_of_the_pods_directory(directory: PodDirectory) -> None:
    container = runner(
        "--op=apply",
        "--bin=/captf/runtime",
        "--image=registry/captf/work:v1",
        "--module=/captf/module",
        "--workdir=/captf/work",
        '--backend-config=labels={"a"="/tmp"}',
    )
    found = argv(container, directory)
    root = directory.root
    assert found[:2] == [f"{root}/captf/bin/runner", "run"]
    assert "--bin=/usr/local/bin/terraform" in found
    assert "--image=registry/captf/work:v1" in found
    assert f"--module={root}/captf/module" in found
    assert f"--workdir={root}/captf/work" in found
    assert '--backend-config=labels={"a"="/tmp"}' in found


def test_flags_that_were_left_to_their_defaults_are_given(directory: PodDirectory) -> None:
    found = argv(runner("--op=apply"), directory)
    root = directory.root
    assert f"--workdir={root}/captf/work" in found
    assert f"--module={root}/captf/module" in found
    assert f"--providers={root}/captf/providers" in found
    assert "--bin=/usr/local/bin/terraform" in found
    assert f"--result={directory.termination_log('source')}" in found


def test_a_result_path_below_a_mounted_tmp_is_not_rewritten_twice(directory: PodDirectory) -> None:
    """The pod's directory may itself lie below /tmp, as in these tests."""
    assert str(directory.path).startswith("/tmp")
    found = argv(runner("--op=apply", "--config=/tmp/x"), directory)
    assert f"--result={directory.termination_log('source')}" in found
    assert f"--config={directory.root}/tmp/x" in found


def test_the_in_cluster_backend_becomes_a_kubeconfig_and_no_token_is_an_argument(
    directory: PodDirectory,
) -> None:
    found = argv(runner("--op=apply", "--backend-config=in_cluster_config=true"), directory)
    assert f"--backend-config=config_path={directory.kubeconfig}" in found
    assert not any("in_cluster_config" in text for text in found)


def test_a_provider_mirror_is_named_directly(directory: PodDirectory, tmp_path: Path) -> None:
    found = argv(
        runner("--op=apply", "--providers=/captf/providers"), directory, providers=tmp_path / "m"
    )
    assert f"--providers={tmp_path / 'm'}" in found


def test_other_programs_get_no_flags_of_the_runner(directory: PodDirectory) -> None:
    container = Container(name="x", command=["/bin/sh", "-c", "ls /captf/work"])
    assert argv(container, directory) == ["/bin/sh", "-c", "ls /captf/work"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/captf/work", "/here/work"),
        ("/captf/work/", "/here/work/"),
        ("/captf/work/root/a", "/here/work/root/a"),
        ("/captf/workshop", "/captf/workshop"),
        ("/captf", "/captf"),
        ("/captf/work/deep/x", "/elsewhere/x"),
        ("captf/work", "captf/work"),
        ("a /captf/work", "a /captf/work"),
        ("", ""),
    ],
)
def test_only_whole_paths_are_rewritten_and_the_longest_mount_counts(
    value: str, expected: str
) -> None:
    paths = Paths({"/captf/work": Path("/here/work"), "/captf/work/deep": Path("/elsewhere")})
    assert paths.here(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(A)", "x1y1"),
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$A ${A}", "$A ${A}"),
        ("100$$", "100$"),
    ],
)
def test_references_are_expanded_as_a_kubelet_does(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}) == expected


def test_only_a_copy_by_the_runner_is_taken_for_the_runners_copy() -> None:
    assert copy_target(["/runner", "copy", "/captf/bin/runner"]) == "/captf/bin/runner"
    assert copy_target(["/runner", "copy"]) is None
    assert copy_target(["/bin/cp", "copy", "/x"]) is None


def test_a_long_path_for_temporary_files_gets_a_short_link_that_goes_with_the_pod(
    tmp_path: Path,
) -> None:
    long = PodDirectory(tmp_path / ("x" * 80))
    record = Record(namespace="n", name="p", uid=f"{tmp_path.name}-uid", started_at=0)
    long.make()
    target = long.inside("/tmp")
    target.mkdir()
    short = long.short_tmp(target, record)
    try:
        assert len(str(short)) < 64
        assert short.resolve() == target.resolve()
        long.write(record)
        assert long.short_tmp(target, record) == short
    finally:
        long.remove()
    assert not short.is_symlink()
    assert not long.path.exists()


def test_a_directory_with_unwritable_parts_can_be_removed(tmp_path: Path) -> None:
    directory = PodDirectory(tmp_path / "pod")
    locked = directory.inside("/captf/work/locked")
    locked.mkdir(parents=True)
    (locked / "file").write_text("")
    locked.chmod(0o500)
    directory.remove()
    assert not directory.path.exists()
