"""The schemas and CEL rules of our kinds on the real API server: what it takes and what it
refuses."""

import contextlib
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.cluster.errors import Forbidden, Invalid
from captfctl.cluster.live import LiveDoor
from captfctl.install.permissions import EDITOR_ROLE
from captfctl.model.core import Namespace, RoleBinding, RoleRef, ServiceAccount, Subject
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import (
    NAMESPACES,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTER_TEMPLATES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_TEMPLATES,
    TERRAFORM_MACHINES,
)
from tests.e2e.site import eventually

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

NAMESPACE = "admission"
LONG = "a" * 254


@pytest.fixture(scope="module")
def door(site) -> Iterator[LiveDoor]:
    door = site.door()
    door.create(NAMESPACES, Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    yield door
    door.close()


def merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """`base` with `change` laid over it; None takes a field out."""
    result = copy.deepcopy(base)
    for name, value in change.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = merged(result[name], value)
        else:
            result[name] = value
    return result


CLUSTER = {"source": {"image": "registry.example.com/a:v1"}, "identityRef": {"name": "main"}}
IDENTITY = {"secretRef": {"name": "keys", "namespace": "team-a"}}


def put(door: LiveDoor, resource, base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    document = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"generateName": "case-"},
        "spec": merged(base, change),
    }
    return door.create(resource.untyped(), document, NAMESPACE if resource.namespaced else "")


ACCEPTED = {
    "as little as possible": {},
    "an image whose name has 255 characters": {
        "source": {"image": f"example.com/{'a' * 243}:v1@sha256:{'0' * 64}"}
    },
    "an endpoint with host and port (3)": {"controlPlaneEndpoint": {"host": "a", "port": 6443}},
    "an empty endpoint": {"controlPlaneEndpoint": {}},
    "a lock timeout of zero (19)": {"jobs": {"lockTimeoutSeconds": 0}},
    "history limits of zero": {
        "jobs": {"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}
    },
    "no drift checks": {"drift": {"intervalSeconds": 0}},
    "256 variables (29)": {"variables": {f"v{n}": n for n in range(256)}},
    "any JSON as a variable": {"variables": {"a": {"b": [1, None, {"c": "d"}]}, "e": 0.5}},
    "one source of variables of each kind (31)": {
        "variablesFrom": [{"configMapRef": {"name": "a.b"}}, {"secretRef": {"name": "c"}}]
    },
    "defaults beside the own identity (1)": {"defaults": {"identityRef": {"name": "other"}}},
}

REFUSED = {
    "no identity, only a default (1)": (
        {"identityRef": None, "defaults": {"identityRef": {"name": "other"}}},
        "identityRef",
    ),
    "no source": ({"source": None}, "spec.source"),
    "no image (6)": ({"source": {"image": ""}}, "spec.source.image"),
    "an image whose name has 256 characters": (
        {"source": {"image": f"example.com/{'a' * 244}:v1"}},
        "spec.source.image",
    ),
    "an image of 513 characters": ({"source": {"image": "a" * 513}}, "spec.source.image"),
    "an unknown pull policy": (
        {"source": {"imagePullPolicy": "Sometimes"}},
        "spec.source.imagePullPolicy",
    ),
    "a host without a port (3)": (
        {"controlPlaneEndpoint": {"host": "a"}},
        "spec.controlPlaneEndpoint",
    ),
    "a port without a host": (
        {"controlPlaneEndpoint": {"port": 6443}},
        "spec.controlPlaneEndpoint",
    ),
    "a port that is none": (
        {"controlPlaneEndpoint": {"host": "a", "port": 65536}},
        "spec.controlPlaneEndpoint.port",
    ),
    "an empty host": (
        {"controlPlaneEndpoint": {"host": "", "port": 1}},
        "spec.controlPlaneEndpoint.host",
    ),
    "a deadline of more than a day": (
        {"jobs": {"activeDeadlineSeconds": 86401}},
        "spec.jobs.activeDeadlineSeconds",
    ),
    "a lock timeout of more than an hour": (
        {"jobs": {"lockTimeoutSeconds": 3601}},
        "spec.jobs.lockTimeoutSeconds",
    ),
    "a history of 101 Jobs": (
        {"jobs": {"failedJobsHistoryLimit": 101}},
        "spec.jobs.failedJobsHistoryLimit",
    ),
    "an empty job policy": ({"jobs": {}}, "spec.jobs"),
    "empty defaults": ({"defaults": {}}, "spec.defaults"),
    "the same environment variable twice": (
        {"jobs": {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}},
        "spec.jobs.env",
    ),
    "257 variables (29)": ({"variables": {f"v{n}": n for n in range(257)}}, "spec.variables"),
    "variables that are a list (30)": ({"variables": []}, "spec.variables"),
    "variables that are a text (30)": ({"variables": "x"}, "spec.variables"),
    "no variables, but said so": ({"variables": {}}, "spec.variables"),
    "a source of variables with both references (31)": (
        {"variablesFrom": [{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]},
        "spec.variablesFrom[0]",
    ),
    "a source of variables with none (31)": ({"variablesFrom": [{}]}, "spec.variablesFrom[0]"),
    "17 sources of variables": (
        {"variablesFrom": [{"secretRef": {"name": f"s{n}"}} for n in range(17)]},
        "spec.variablesFrom",
    ),
    "a source's name that is none": (
        {"variablesFrom": [{"secretRef": {"name": "A_b"}}]},
        "spec.variablesFrom[0].secretRef.name",
    ),
    "an unknown format": (
        {"variablesFrom": [{"secretRef": {"name": "a"}, "format": "YAML"}]},
        "spec.variablesFrom[0].format",
    ),
    "an unknown apply policy": ({"applyPolicy": "Never"}, "spec.applyPolicy"),
    "an unknown deletion policy": ({"deletionPolicy": "Orphan"}, "spec.deletionPolicy"),
    "an unknown kind of identity": (
        {"identityRef": {"name": "a", "kind": "Role"}},
        "spec.identityRef.kind",
    ),
    "an identity's name that is too long": ({"identityRef": {"name": LONG}}, "spec.identityRef"),
    "an unknown drift action": ({"drift": {"action": "Ignore"}}, "spec.drift.action"),
    "a negative drift interval": ({"drift": {"intervalSeconds": -1}}, "spec.drift"),
    "room for a negative number of Jobs": ({"maxActiveJobs": -1}, "spec.maxActiveJobs"),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_cluster_with_this_is_taken_and_nothing_is_filled_in(door, case):
    taken = put(door, TERRAFORM_CLUSTERS, CLUSTER, ACCEPTED[case])
    assert taken["spec"] == merged(CLUSTER, ACCEPTED[case])


@pytest.mark.parametrize("case", REFUSED)
def test_a_cluster_with_this_is_refused_at_the_field(door, case):
    change, field = REFUSED[case]
    with pytest.raises(Invalid) as refused:
        put(door, TERRAFORM_CLUSTERS, CLUSTER, change)
    assert any(cause.field.startswith(field) for cause in refused.value.causes) or (
        field in str(refused.value)
    ), refused.value


def update(door: LiveDoor, taken: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    name = taken["metadata"]["name"]
    return door.patch(TERRAFORM_CLUSTERS.untyped(), name, NAMESPACE, {"spec": spec})


ENDPOINT = {"controlPlaneEndpoint": {"host": "a", "port": 6443}}


@pytest.mark.parametrize(
    "change",
    [{"host": "b"}, {"port": 443}, {"host": None}, {"host": None, "port": None}, None],
    ids=["host", "port", "no host", "emptied", "removed"],
)
def test_a_complete_endpoint_stays_as_it_is(door, change):
    """Case 5."""
    taken = put(door, TERRAFORM_CLUSTERS, CLUSTER, ENDPOINT)
    with pytest.raises(Invalid, match=r"immutable|both host and port"):
        update(door, taken, {"controlPlaneEndpoint": change})


@pytest.mark.parametrize("start", [{}, {"controlPlaneEndpoint": {}}], ids=["none", "empty"])
def test_an_endpoint_that_is_not_complete_may_still_be_set(door, start):
    """Case 4, as far as an object with half an endpoint can be stored at all."""
    taken = put(door, TERRAFORM_CLUSTERS, CLUSTER, start)
    assert update(door, taken, ENDPOINT)["spec"]["controlPlaneEndpoint"] == {
        "host": "a",
        "port": 6443,
    }


def test_a_complete_endpoint_does_not_stand_in_the_way_of_other_changes(door):
    taken = put(door, TERRAFORM_CLUSTERS, CLUSTER, ENDPOINT)
    assert update(door, taken, {"variables": {"a": 1}})["spec"]["variables"] == {"a": 1}


ALLOWED = {
    "left out (50)": {},
    "a list": {"allowedNamespaces": {"list": ["team-a"]}},
    "everybody (50)": {"allowedNamespaces": {"selector": {}}},
    "a selector": {"allowedNamespaces": {"selector": {"matchLabels": {"a": "b"}}}},
    "both": {"allowedNamespaces": {"list": ["team-a"], "selector": {"matchLabels": {"a": "b"}}}},
}

NOT_ALLOWED = {
    "{} (50)": ({"allowedNamespaces": {}}, "ambiguous"),
    "an empty list": ({"allowedNamespaces": {"list": []}}, "allowedNamespaces.list"),
    "a namespace twice": ({"allowedNamespaces": {"list": ["a", "a"]}}, "Duplicate"),
    "a namespace that cannot be": ({"allowedNamespaces": {"list": ["A_"]}}, "list"),
    "101 namespaces": (
        {"allowedNamespaces": {"list": [f"n{n}" for n in range(101)]}},
        "allowedNamespaces.list",
    ),
    "no Secret": ({"secretRef": None, "type": "Secret"}, "secretRef"),
    "a Secret without a namespace": ({"secretRef": {"namespace": None}}, "namespace"),
    "an unknown type": ({"type": "Vault"}, "type"),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_an_identity_with_this_is_taken(door, case):
    taken = put(door, TERRAFORM_CLUSTER_IDENTITIES, IDENTITY, ALLOWED[case])
    assert taken["spec"] == merged(IDENTITY, ALLOWED[case])


@pytest.mark.parametrize("case", NOT_ALLOWED)
def test_an_identity_with_this_is_refused(door, case):
    change, named = NOT_ALLOWED[case]
    with pytest.raises(Invalid, match=named):
        put(door, TERRAFORM_CLUSTER_IDENTITIES, IDENTITY, change)


@pytest.fixture(scope="module")
def editor(site, door, tmp_path_factory) -> Iterator[LiveDoor]:
    """Somebody who may change all of our objects in the namespace, and none of their status."""
    account = ServiceAccount(metadata=ObjectMeta(name="editor", namespace=NAMESPACE))
    door.create(SERVICE_ACCOUNTS, account, NAMESPACE)
    binding = RoleBinding(
        metadata=ObjectMeta(name="editor", namespace=NAMESPACE),
        role_ref=RoleRef(
            api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=EDITOR_ROLE
        ),
        subjects=[Subject(kind="ServiceAccount", name="editor", namespace=NAMESPACE)],
    )
    door.create(ROLE_BINDINGS, binding, NAMESPACE)
    kubeconfig = tmp_path_factory.mktemp("editor") / "kubeconfig"
    site.plane.write_kubeconfig(kubeconfig, site.token(door, "editor", NAMESPACE))
    editor = LiveDoor.from_kubeconfig(kubeconfig)
    yield editor
    editor.close()


@pytest.fixture(scope="module")
def manager(site) -> Iterator[LiveDoor]:
    """With the rights of the manager's account."""
    manager = LiveDoor.from_kubeconfig(site.manager_kubeconfig)
    yield manager
    manager.close()


def test_only_the_manager_sets_the_provider_id_of_a_machine_that_exists(door, editor, manager):
    """Cases 11 and 13."""
    image = {"source": {"image": "registry.example.com/a:v1"}}
    name = put(door, TERRAFORM_MACHINES, image, {})["metadata"]["name"]

    def change(who: LiveDoor, **spec: str) -> dict[str, Any]:
        changed = who.patch(TERRAFORM_MACHINES.untyped(), name, NAMESPACE, {"spec": spec})
        return changed["spec"]

    user = "system:serviceaccount:admission:editor"
    eventually(lambda: may_change(editor, name), "the editor's rights")
    with pytest.raises(Invalid, match=f'is set by the manager.*, not by user "{user}"'):
        change(editor, providerID="cloud:///mine")
    assert change(manager, providerID="cloud:///1")["providerID"] == "cloud:///1"
    for who in (manager, editor, door):
        with pytest.raises(Invalid, match="providerID is immutable once it is set"):
            change(who, providerID="cloud:///2")
    assert change(editor, deletionPolicy="Destroy")["providerID"] == "cloud:///1"


def may_change(editor: LiveDoor, name: str) -> bool:
    """A server knows a new binding only after a moment."""
    with contextlib.suppress(Forbidden):
        keep = {"spec": {"deletionPolicy": "Retain"}}
        editor.patch(TERRAFORM_MACHINES, name, NAMESPACE, keep)
        return True
    return False


def test_a_machine_may_be_created_with_a_provider_id_by_anybody(editor):
    """Case 12: a machine that is restored or moved."""
    spec = {"source": {"image": "registry.example.com/a:v1"}, "providerID": "cloud:///moved"}
    assert put(editor, TERRAFORM_MACHINES, spec, {})["spec"] == spec


TEMPLATE = {"template": {"spec": {"source": {"image": "registry.example.com/a:v1"}}}}


@pytest.mark.parametrize(
    ("marks", "refused"),
    [
        ({"labels": {"a" * 63: "b" * 63, "example.com/c": ""}}, ""),
        ({"annotations": {"Example.com/a": "any, at all"}}, ""),
        ({"labels": {"a" * 64: ""}}, "labels["),
        ({"labels": {"a": "b" * 64}}, "labels[a]"),
        ({"annotations": {"a b": ""}}, "annotations[a b]"),
    ],
)
def test_a_template_may_hold_the_marks_that_an_object_may_have(door, marks, refused):
    change = {"template": {"metadata": marks}}
    if not refused:
        put(door, TERRAFORM_MACHINE_TEMPLATES, TEMPLATE, change)
        return
    with pytest.raises(Invalid) as told:
        put(door, TERRAFORM_MACHINE_TEMPLATES, TEMPLATE, change)
    assert f"spec.template.metadata.{refused}" in str(told.value)


def test_a_capacity_is_made_of_quantities(door):
    good = {"capacity": {"cpu": 4, "memory": "8Gi", "example.com/gpu": "1"}}
    put(door, TERRAFORM_MACHINE_TEMPLATES, TEMPLATE, good)
    with pytest.raises(Invalid, match=r"spec\.capacity"):
        put(door, TERRAFORM_MACHINE_TEMPLATES, TEMPLATE, {"capacity": {"memory": "8 Gi"}})


def test_kubectl_warns_of_a_cluster_template_without_an_identity(site, door):
    """Case 2."""
    kind = TERRAFORM_CLUSTER_TEMPLATES
    document = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "without-identity", "namespace": NAMESPACE},
        "spec": TEMPLATE,
    }
    create = ("create", "--warnings-as-errors", "-f", "-")
    with pytest.raises(AssertionError, match=r"Warning: .*identityRef: is not set"):
        site.kubectl(*create, text=json.dumps(document))
    assert door.get(kind, "without-identity", NAMESPACE)
    document["metadata"] |= {"name": "with-identity"}
    document["spec"] = merged(TEMPLATE, {"template": {"spec": {"identityRef": {"name": "a"}}}})
    site.kubectl(*create, text=json.dumps(document))
