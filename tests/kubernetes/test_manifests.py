"""What `captfctl manifests` prints, on a real server: accepted, repeatable, removable."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from captfctl.model.crds import crds
from tests.controlplane.processes import ControlPlane, running
from tests.e2e.site import CAPTFCTL, eventually, kubectl

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

NAMESPACE = "captf-elsewhere"
DEFINITION_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


@pytest.fixture(scope="module")
def plane(assets, tmp_path_factory) -> Iterator[ControlPlane]:
    """One of its own: removing the kinds would take every test's objects along."""
    plane = ControlPlane(assets, tmp_path_factory.mktemp("bare") / "plane", scheduler=False)
    with running(plane):
        yield plane


@pytest.fixture(scope="module")
def text() -> str:
    options = [
        "--image=registry.example.com/captfctl:v1",
        f"--namespace={NAMESPACE}",
        "--watch-namespace=team-a",
        "--flag=--max-active-jobs=3",
    ]
    command = [CAPTFCTL, "manifests", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def apply(plane: ControlPlane, text: str) -> list[str]:
    flags = ("--server-side", "--validate=strict", "-f", "-")
    return kubectl(plane.kubeconfig, "apply", *flags, text=text).splitlines()


def stored(plane: ControlPlane, text: str) -> dict[str, dict]:
    """Everything in `text` as the server has it, by kind and name."""
    asked = ("get", "-f", "-", "-o", "json", "--show-managed-fields")
    answer = kubectl(plane.kubeconfig, *asked, text=text)
    return {f"{i['kind']} {i['metadata']['name']}": i for i in json.loads(answer)["items"]}


def written(plane: ControlPlane, text: str) -> dict[str, dict]:
    """What was applied of it, and who applied which fields.

    Not the status, which controllers write when they come to it: on a busy machine after a minute.
    Nor times and versions: a server counts it as a change when, by time, the entry of an apply
    moves behind that of a status.
    """
    objects = stored(plane, text)
    for item in objects.values():
        item.pop("status", None)
        meta = item["metadata"]
        del meta["resourceVersion"]
        applied = [m for m in meta["managedFields"] if m.get("subresource") is None]
        meta["managedFields"] = [{**entry, "time": None} for entry in applied]
    return objects


def deployment(plane: ControlPlane) -> dict:
    answer = kubectl(
        plane.kubeconfig, "get", "deployment", "-n", NAMESPACE, "-o", "jsonpath={.items[0]}"
    )
    return json.loads(answer)


def test_an_installation_is_accepted_and_repeated_without_a_change(plane, text):
    first = apply(plane, text)
    assert len(first) == text.count("\n---\n") + 1
    assert all(line.endswith("serverside-applied") for line in first)
    established = ("--for=condition=Established", "--timeout=60s", "crd", "--all")
    kubectl(plane.kubeconfig, "wait", *established)
    # The restricted Pod Security level of the namespace lets the pods in.
    eventually(lambda: deployment(plane).get("status", {}).get("replicas") == 2, "both pods exist")

    before = written(plane, text)
    apply(plane, text)
    assert written(plane, text) == before


def test_the_kinds_follow_the_contract_of_cluster_api(plane, text):
    apply(plane, text)
    found = {name: item for name, item in stored(plane, text).items() if name.startswith("Custom")}
    assert len(found) == len(crds())
    for crd in found.values():
        assert crd["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"] == "v1alpha1"
        assert crd["spec"]["conversion"]["strategy"] == "None"
        (version,) = crd["spec"]["versions"]
        assert version["served"]
        assert version["storage"]
        said = {c["type"]: c for c in crd["status"]["conditions"]}
        assert "NonStructuralSchema" not in said, said


def test_options_reach_the_managers_command_line(plane, text):
    apply(plane, text)
    (container,) = deployment(plane)["spec"]["template"]["spec"]["containers"]
    assert {"--leader-elect", "--namespace=team-a", "--max-active-jobs=3"} <= set(container["args"])


def test_kubectl_shows_the_columns_of_the_kinds(plane, text):
    apply(plane, text)
    established = ("--for=condition=Established", "--timeout=60s", "crd", "--all")
    kubectl(plane.kubeconfig, "wait", *established)
    identity = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "TerraformClusterIdentity",
        "metadata": {"name": "columns"},
        "spec": {"secretRef": {"name": "keys", "namespace": "team-a"}},
    }
    kubectl(plane.kubeconfig, "apply", "-f", "-", text=json.dumps(identity))
    head, row = kubectl(plane.kubeconfig, "get", "tfci").splitlines()
    assert head.split() == ["NAME", "SECRET", "NAMESPACE", "READY", "AGE"]
    assert row.split()[:3] == ["columns", "keys", "team-a"]


def test_an_installation_is_removed(plane, text):
    """The last test of this module: no other one finds the kinds again.

    Of the definitions only the mark is waited for. The API server removes one once its cache of
    the kind is ready, and asks less and less often: on a busy machine that has taken minutes.
    """
    apply(plane, text)
    kubectl(plane.kubeconfig, "delete", "--wait=false", "-f", "-", text=text)

    def kept() -> list[str]:
        asked = ("get", "--ignore-not-found", "-o", "json", "-f", "-")
        answer = kubectl(plane.kubeconfig, *asked, text=text, check=False)
        found = json.loads(answer or '{"items": []}')
        items = found.get("items", [found])
        return [item["metadata"]["name"] for item in items if not being_removed(item)]

    eventually(lambda: not kept(), lambda: f"removed: {kept()} are still there")


def being_removed(item: dict) -> bool:
    """Whether this is a definition that only the API server's own finalizer still holds."""
    meta = item["metadata"]
    held_by_others = set(meta.get("finalizers", [])) - {DEFINITION_CLEANUP}
    is_definition = item["kind"] == "CustomResourceDefinition"
    return is_definition and "deletionTimestamp" in meta and not held_by_others
