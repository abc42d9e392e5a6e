"""Every typed call of Kubernetes' Go clients, for every kind that is served.

The same calls go to the embedded API server and to Kubernetes' own: both are to take all of them.
"""

import json
import shutil
import subprocess
import uuid

import pytest

from tests.apiserver.conftest import WIDGETS
from tests.apiserver.examples import EXAMPLES
from tests.controlplane.assets import AssetsMissingError, go_client
from tests.controlplane.session import api_server
from tests.support.clock import eventually

pytestmark = pytest.mark.timeout(900)  # the first run on a machine builds the program

VERBS = {
    "create",
    "get",
    "update",
    "apply",
    "apply anew",
    "watch",
    "list",
    "delete",
    "list metadata",
    "watch metadata",
}
OF_CUSTOM_KINDS = VERBS - {"get", "apply anew", "watch"}


@pytest.fixture(scope="module")
def program():
    try:
        return go_client()
    except AssetsMissingError as error:
        pytest.skip(str(error))


def calls_of(program, kubeconfig, namespace, *, protobuf):
    job = {
        "kubeconfig": str(kubeconfig),
        "namespace": namespace,
        "protobuf": protobuf,
        "objects": [_object(example, namespace) for example in EXAMPLES],
    }
    done = subprocess.run(
        [program], input=json.dumps(job), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _object(example, namespace):
    group, _, version = example.api_version.rpartition("/")
    run = uuid.uuid4().hex[:6]  # what is in no namespace outlives the test
    names = [f"{name}{'' if example.namespaced else run}" for name in ("one", "two")]
    documents = [example.named(name, namespace) for name in names]
    for document in documents:
        document["metadata"]["labels"] = {"run": "goclient"}
    found = {
        "group": group,
        "version": version,
        "kind": example.kind,
        "plural": example.plural,
        "namespaced": example.namespaced,
        "first": documents[0],
        "second": documents[1],
    }
    return found if example.status is None else {**found, "status": example.status}


def check(calls):
    assert [call for call in calls if call["Error"]] == []
    made: dict[str, set[str]] = {}
    for call in calls:
        made.setdefault(call["Kind"], set()).add(call["Call"])
    for example in EXAMPLES:
        assert made[example.kind] >= (OF_CUSTOM_KINDS if example.kind == "Widget" else VERBS)
        assert ("apply status" in made[example.kind]) is (example.status is not None)
        assert "informer" in made[example.plural]


@pytest.mark.parametrize("encoding", ["json", "protobuf"])
def test_every_call_of_every_kind(api, namespace, program, encoding):
    protobuf = encoding == "protobuf"
    check(calls_of(program, api.server.kubeconfig_path, namespace, protobuf=protobuf))


@pytest.mark.kubernetes
def test_the_real_server_takes_the_same_calls(program, tmp_path):
    with api_server(tmp_path) as (kubeconfig, _):
        kubectl = [shutil.which("kubectl") or "kubectl", f"--kubeconfig={kubeconfig}"]
        namespace = f"go-client-{uuid.uuid4().hex[:8]}"
        definition = json.dumps(WIDGETS)
        subprocess.run([*kubectl, "apply", "-f", "-"], input=definition, text=True, check=True)
        subprocess.run([*kubectl, "create", "namespace", namespace], check=True)
        get = [*kubectl, "get", "widgets", "-A"]
        eventually(
            lambda: subprocess.run(get, capture_output=True, check=False).returncode == 0,
            "the new kind",
        )
        check(calls_of(program, kubeconfig, namespace, protobuf=True))
