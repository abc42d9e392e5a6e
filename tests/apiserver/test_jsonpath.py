"""The JSONPath of printer columns."""

import pytest

from captfctl.embedded.apiserver.jsonpath import JsonPathError, parse

CLUSTER = {
    "metadata": {
        "labels": {"cluster.x-k8s.io/cluster-name": "demo", "plain": "p"},
        "ownerReferences": [
            {"kind": "Other", "name": "no"},
            {"kind": "Machine", "name": "m-1"},
        ],
    },
    "spec": {"image": "i:1", "ports": [80, 443, 8080], "off": False},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "weight": 2},
            {"type": "InputsApplied", "status": "False", "weight": 5},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.image", ["i:1"]),
        ("spec.image", ["i:1"]),
        ("{.spec.image}", ["i:1"]),
        (".spec.off", [False]),
        (".spec.absent.deep", []),
        (r".metadata.labels.cluster\.x-k8s\.io/cluster-name", ["demo"]),
        (".metadata.labels['cluster.x-k8s.io/cluster-name']", ["demo"]),
        ('.metadata.labels["plain"]', ["p"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='InputsApplied')].status", ["False"]),
        ('.status.conditions[?(@.type=="Absent")].status', []),
        ('.status.conditions[?(@.type != "Ready")].type', ["InputsApplied"]),
        (".status.conditions[?(@.weight>3)].type", ["InputsApplied"]),
        (".status.conditions[?(@.weight<=2)].type", ["Ready"]),
        (".status.conditions[?(@.type>3)].type", []),
        (".metadata.ownerReferences[?(@.kind=='Machine')].name", ["m-1"]),
        (".metadata.ownerReferences[?(@.name)].kind", ["Other", "Machine"]),
        (".spec.ports[0]", [80]),
        (".spec.ports[-1]", [8080]),
        (".spec.ports[9]", []),
        (".spec.ports[*]", [80, 443, 8080]),
        (".spec.ports[1:]", [443, 8080]),
        (".metadata.labels.*", ["demo", "p"]),
        (".", [CLUSTER]),
    ],
)
def test_a_path_leads_to_its_values(path, found):
    assert parse(path).find(CLUSTER) == found


@pytest.mark.parametrize("path", [".a[", ".a[?(@.b==)]", ".a[?(@.b==nonsense)]", ".a[x]"])
def test_a_path_that_cannot_be_read_is_an_error(path):
    with pytest.raises(JsonPathError):
        parse(path)
