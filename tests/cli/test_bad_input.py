"""Bad input: one clear message, the documented exit code, no traceback, nothing half-done."""

import socket
from pathlib import Path

import pytest

IMAGE = "registry.example.com/quickstart/cluster:v1"


def refused(ended, code: int, *words: str) -> None:
    assert ended.code == code, ended
    assert "Traceback" not in ended.err
    assert ended.err.startswith("Error: ")
    for word in words:
        assert word in ended.err, ended.err


def line_of(file: str, text: str) -> int:
    lines = Path(file).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_yaml_that_does_not_parse_names_its_line(captfctl, tmp_path):
    (tmp_path / "broken.yaml").write_text("a: [1\nb: 2\n")

    refused(captfctl("reconcile", "-f", "broken.yaml", "--dry-run"), 2, "broken.yaml:2: ")


def test_an_unknown_kind_names_the_nearest_one(captfctl, quickstart):
    file = quickstart(("kind: TerraformCluster\n", "kind: TeraformCluster\n"))

    refused(
        captfctl("reconcile", "-f", file, "--dry-run"), 2, "TeraformCluster", "TerraformCluster?"
    )


def test_a_field_of_the_wrong_type_names_line_and_path(captfctl, quickstart):
    file = quickstart((f"image: {IMAGE}", "image: 5"))
    line = line_of(file, "image: 5")

    refused(
        captfctl("reconcile", "-f", file, "--dry-run"), 2, f"{file}:{line}: spec.source.image: "
    )


def test_a_field_that_does_not_exist_names_what_was_probably_meant(captfctl, quickstart):
    file = quickstart(("    image: ", "    imag: "))
    line = line_of(file, "imag: ")

    refused(
        captfctl("reconcile", "-f", file, "--dry-run"),
        2,
        f"{file}:{line}: spec.source.imag: ",
        "image?",
    )


def test_two_objects_with_one_name_name_both_places(captfctl, quickstart):
    file = quickstart()
    text = Path(file).read_text()
    Path(file).write_text(f"{text}---\n{text}")

    refused(captfctl("reconcile", "-f", file, "--dry-run"), 2, "described twice", f"{file}:")


def test_a_missing_file_is_named(captfctl):
    refused(captfctl("reconcile", "-f", "absent.yaml", "--dry-run"), 2, "absent.yaml")


def test_an_unknown_image_says_how_to_add_it_and_nothing_is_kept(captfctl, quickstart, tmp_path):
    ended = captfctl("reconcile", "-f", quickstart(), "--local", "--data", "data")

    refused(ended, 2, IMAGE, "--images", "spec.source.image")
    assert not (tmp_path / "data").exists()


def test_a_module_without_files_is_refused_before_anything_starts(captfctl, quickstart, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "images.yaml").write_text(f"{IMAGE}:\n  module: empty\n")
    ended = captfctl(
        "reconcile", "-f", quickstart(), "--local", "--data", "data", "--images", "images.yaml"
    )

    refused(ended, 2, "empty", ".tf")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("content", ["- not a table\n", "a: [\n", "image: {modul: x}\n"])
def test_an_image_table_that_cannot_be_used_is_told(captfctl, quickstart, tmp_path, content):
    (tmp_path / "images.yaml").write_text(content)
    ended = captfctl("reconcile", "-f", quickstart(), "--local", "--images", "images.yaml")

    refused(ended, 2, "images.yaml")


def test_a_data_directory_that_cannot_be_made_is_told(captfctl, quickstart, tmp_path):
    (tmp_path / "file").write_text("")
    module = Path(__file__).parents[2] / "examples" / "quickstart" / "module"
    (tmp_path / "images.yaml").write_text(f"{IMAGE}:\n  module: {module}\n")
    ended = captfctl(
        "reconcile", "-f", quickstart(), "--local", "--data", "file/data", "--images", "images.yaml"
    )

    refused(ended, 3, "data directory", "file/data")


def test_a_port_in_use_is_told(captfctl):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused(captfctl("local", "up", "--port", str(port)), 3, str(port), "--port")


def test_a_kubeconfig_that_points_nowhere_is_told_without_its_token(captfctl, tmp_path):
    (tmp_path / "kubeconfig").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {token: canary-token}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
    )
    ended = captfctl("manage", "--kubeconfig", "kubeconfig", "--runner-image", "a/b:v1")

    refused(ended, 3, "https://127.0.0.1:1")
    assert "canary-token" not in ended.err


def test_a_kubeconfig_that_does_not_exist_is_told(captfctl):
    ended = captfctl("manage", "--kubeconfig", "absent", "--runner-image", "a/b:v1")

    refused(ended, 2, "absent")


def test_every_wrong_flag_of_the_manager_is_told_at_once(captfctl):
    ended = captfctl("manage", "--max-active-jobs=-1", "--terraformcluster-concurrency=0")

    refused(ended, 2, "--max-active-jobs", "--terraformcluster-concurrency", "--runner-image")


def test_a_duration_without_unit_is_told_with_its_flag(captfctl):
    ended = captfctl("manage", "--runner-image=a/b:v1", "--sync-period=10")

    refused(ended, 2, "--sync-period", "unit")


@pytest.mark.parametrize(
    ("timeout", "why"), [("-5s", "negative"), ("1", "unit"), ("9999999999999h", "too long")]
)
def test_a_timeout_that_cannot_be_kept_is_refused_and_nothing_is_stored(
    captfctl, quickstart, tmp_path, timeout, why
):
    data = tmp_path / "data"
    ended = captfctl(
        "reconcile", "-f", quickstart(), "--local", f"--data={data}", f"--timeout={timeout}"
    )

    refused(ended, 2, "--timeout", why)
    assert not data.exists()


@pytest.mark.parametrize("flags", [(), ("--local", "--dry-run")])
def test_reconcile_wants_to_know_where(captfctl, quickstart, flags):
    refused(captfctl("reconcile", "-f", quickstart(), *flags), 2, "--local", "--dry-run")


def test_get_without_a_control_plane_says_how_to_have_one(captfctl):
    refused(captfctl("get"), 3, "captfctl local up", "--kubeconfig")


def test_get_from_a_data_directory_that_cannot_be_looked_into_is_told(captfctl, tmp_path):
    refused(captfctl("get", f"--data={tmp_path / ('d' * 300)}"), 3, "File name too long", "--data")


@pytest.mark.parametrize(
    "arguments", [("reconcile", "--dry-run", "--filename"), ("get", "--kubeconfig")]
)
def test_a_path_that_cannot_be_looked_at_is_bad_input(captfctl, arguments):
    ended = captfctl(*arguments, "d" * 300)

    refused(ended, 2, "ddd")
    assert "defect" not in ended.err


def test_an_unknown_kind_of_get_names_the_nearest(captfctl):
    refused(captfctl("get", "terraformcluste"), 2, "terraformcluster")


def test_the_name_of_a_cluster_that_no_label_holds_names_file_and_line(captfctl, quickstart):
    long = "c" * 64
    file = quickstart(
        (
            "kind: Cluster\nmetadata:\n  name: quickstart",
            f"kind: Cluster\nmetadata:\n  name: {long}",
        )
    )
    line = line_of(file, f"name: {long}")

    for where in ("--dry-run", "--local"):
        ended = captfctl("reconcile", "-f", file, where)
        refused(ended, 2, f"{file}:{line}: metadata.name: ", "at most 63 characters, not 64")


def test_the_name_of_a_node_that_no_label_holds_is_refused_at_once(captfctl):
    ended = captfctl("local", "node", "--name", "n" * 64)
    refused(ended, 2, "--name", "at most 63 characters")
