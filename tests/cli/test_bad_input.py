"""Bad input: one clear message, the documented exit code, no traceback, nothing half-done."""

import shutil
import socket
from pathlib import Path

import pytest

from tests.cli.conftest import QUICKSTART

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


HERE = ("--local", "--data", "data")


@pytest.mark.parametrize("how", [("--dry-run",), HERE, None], ids=["dry-run", "local", "up"])
def test_a_misspelled_variable_names_its_line_and_what_was_meant(
    captfctl, quickstart, tmp_path, how
):
    file = quickstart(("    subnets: 2\n", "    subnets: 2\n    regoin: eu-north-1\n"))
    images = image_table(tmp_path)
    command = ("reconcile", *how) if how else ("local", "up", "--data", "data")
    ended = captfctl(*command, "-f", file, "--images", images)

    place = f"{file}:{line_of(file, 'regoin')}: spec.variables.regoin: "
    refused(ended, 2, place, 'did you mean "region"?')
    assert not (tmp_path / "data").exists()


def test_a_misspelled_key_of_a_described_source_is_told_where_it_stands(
    captfctl, quickstart, tmp_path
):
    file = quickstart(*with_source('{"mtu": "9000", "regoin": "eu"}'))
    ended = captfctl("reconcile", "-f", file, "--dry-run", "--images", image_table(tmp_path))

    place = f"{file}:{line_of(file, 'regoin')}: data.regoin: "
    refused(ended, 2, place, 'did you mean "region"?', '"mtu" is not declared')


def test_a_required_variable_without_a_value_is_told_where_all_sources_are_known(
    captfctl, quickstart, tmp_path
):
    images = image_table(tmp_path, 'variable "owner" {}\n')
    alone = quickstart()
    ended = captfctl("reconcile", "-f", alone, "--dry-run", "--images", images)
    place = f"{alone}:{line_of(alone, 'variables:')}: spec.variables: "
    refused(ended, 2, place, 'variable "owner" is required')

    given = quickstart(*with_source('{"owner": "us"}'))
    assert captfctl("reconcile", "-f", given, "--dry-run", "--images", images).code == 0

    elsewhere = quickstart(*with_source("{}", described="other"))
    ended = captfctl("reconcile", "-f", elsewhere, "--dry-run", "--images", images)
    assert ended.code == 0, ended


def test_a_template_is_told_the_variables_that_its_module_does_not_declare(captfctl, tmp_path):
    images = image_table(tmp_path, 'variable "owner" {}\n')
    (tmp_path / "template.yaml").write_text(
        "apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1\n"
        "kind: TerraformClusterTemplate\nmetadata: {name: t}\nspec:\n  template:\n    spec:\n"
        f"      source: {{image: '{IMAGE}'}}\n      identityRef: {{name: i}}\n"
        "      variables:\n        subnest: 2\n"
    )
    ended = captfctl("reconcile", "-f", "template.yaml", "--dry-run", "--images", images)

    refused(ended, 2, "template.yaml:10: spec.template.spec.variables.subnest: ", '"subnets"?')
    assert "owner" not in ended.err  # a ClusterClass may patch it in


def test_a_module_that_cannot_be_read_refuses_no_variable(captfctl, quickstart, tmp_path):
    file = quickstart(("    subnets: 2\n", "    regoin: eu-north-1\n"))
    images = image_table(tmp_path, 'variable "broken" {\n')

    assert captfctl("reconcile", "-f", file, "--dry-run", "--images", images).code == 0
    assert captfctl("reconcile", "-f", file, "--dry-run").code == 0


def image_table(folder: Path, more: str = "") -> str:
    """A table with the quick start's module, and more in it."""
    shutil.copytree(QUICKSTART / "module", folder / "module", dirs_exist_ok=True)
    (folder / "module" / "more.tf").write_text(more)
    (folder / "images.yaml").write_text(f"{IMAGE}:\n  module: module\n")
    return "images.yaml"


def with_source(data: str, described: str = "given") -> list[tuple[str, str]]:
    """The changes for variables from a ConfigMap `given`; the file describes `described`."""
    metadata = f"{{name: {described}, namespace: default, labels: {{captf.io/variables: 'true'}}}}"
    config_map = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\ndata: {data}\n---\n"
    return [
        ("# A Cluster and", f"{config_map}# A Cluster and"),
        ("  variables:\n", "  variablesFrom: [{configMapRef: {name: given}}]\n  variables:\n"),
    ]


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
