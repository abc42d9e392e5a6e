"""What admission refuses for machines, pools and templates beyond their schemas
(api.md: Admission; api.md: Templates)."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from captfctl.cluster.errors import Invalid
from captfctl.embedded.described import scratch_store
from captfctl.embedded.store import EmbeddedStore, admission
from captfctl.embedded.store.registry import Served
from captfctl.embedded.store.requests import WriteOptions
from captfctl.install.policies import policies
from captfctl.model.crds import crds
from captfctl.model.interface import input_names
from captfctl.model.kinds import Role
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import (
    TERRAFORM_CLUSTER_TEMPLATES,
    TERRAFORM_MACHINE_POOL_TEMPLATES,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINE_TEMPLATES,
    TERRAFORM_MACHINES,
)
from tests.support.clock import FakeClock

ROLES = {
    TERRAFORM_MACHINES.kind: Role.MACHINE,
    TERRAFORM_MACHINE_POOLS.kind: Role.MACHINE_POOL,
    TERRAFORM_CLUSTER_TEMPLATES.kind: Role.CLUSTER,
    TERRAFORM_MACHINE_TEMPLATES.kind: Role.MACHINE,
    TERRAFORM_MACHINE_POOL_TEMPLATES.kind: Role.MACHINE_POOL,
}
TEMPLATES: list[Resource[Any]] = [
    TERRAFORM_CLUSTER_TEMPLATES,
    TERRAFORM_MACHINE_TEMPLATES,
    TERRAFORM_MACHINE_POOL_TEMPLATES,
]
KINDS = [TERRAFORM_MACHINES, TERRAFORM_MACHINE_POOLS, *TEMPLATES]
DRY_RUN = "topology.cluster.x-k8s.io/dry-run"

every_kind = pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)
every_template = pytest.mark.parametrize("resource", TEMPLATES, ids=lambda resource: resource.kind)


@pytest.fixture
def store() -> Iterator[EmbeddedStore]:
    found = scratch_store(FakeClock(), (*crds(), *policies()))
    yield found
    found.close()


class Asked:
    """Creates and updates of one object of a kind."""

    def __init__(self, store: EmbeddedStore, resource: Resource[Any]) -> None:
        self._store, self._resource = store, resource
        served = store.registry.find_kind(resource.api_version, resource.kind)
        assert served is not None
        self._served = served
        self.template = resource in TEMPLATES

    @property
    def path(self) -> str:
        return "spec.template.spec" if self.template else "spec"

    def create(self, *, name: str = "prod", **spec: Any) -> tuple[str, ...]:
        """The warnings."""
        whole = {"source": {"image": "registry.example.com/a:v1"}, **copy.deepcopy(spec)}
        document = {
            "apiVersion": self._resource.api_version,
            "kind": self._resource.kind,
            "metadata": {"name": name},
            "spec": {"template": {"spec": whole}} if self.template else whole,
        }
        return self._store.create(self._served, document, "default").warnings

    def change(self, options: WriteOptions | None = None, *, note: str = "", **spec: Any) -> None:
        """None takes a field away; `note` is an annotation."""

        def changed(stored: Document) -> Document:
            new = copy.deepcopy(stored)
            if note:
                new["metadata"].setdefault("annotations", {})[note] = ""
            inner = new["spec"]["template"]["spec"] if self.template else new["spec"]
            inner.update(copy.deepcopy(spec))
            for name in [name for name, value in inner.items() if value is None]:
                del inner[name]
            return new

        self._store.modify(
            self._served, "prod", "default", changed, options=options or WriteOptions()
        )


@every_kind
def test_everything_that_is_wrong_is_told_at_once(
    store: EmbeddedStore, resource: Resource[Any]
) -> None:
    asked = Asked(store, resource)
    with pytest.raises(Invalid) as refused:
        asked.create(
            source={"image": "Foo Bar"},
            variables={"captf_x": 1},
            jobs={"env": [{"name": "TF_LOG", "value": "trace"}], "lockTimeoutSeconds": 3600},
        )
    for field in (
        "source.image",
        "variables[captf_x]",
        'jobs.env[name="TF_LOG"].name',
        "jobs.lockTimeoutSeconds",
    ):
        assert f"{asked.path}.{field}: " in str(refused.value)


@every_kind
def test_a_sound_object_is_admitted(store: EmbeddedStore, resource: Resource[Any]) -> None:
    Asked(store, resource).create(
        variables={"size": "small"}, jobs={"lockTimeoutSeconds": 60, "activeDeadlineSeconds": 90}
    )


@every_kind
def test_the_inputs_of_its_own_role_are_reserved(
    store: EmbeddedStore, resource: Resource[Any]
) -> None:
    own = input_names(ROLES[resource.kind])
    names = frozenset[str]().union(*map(input_names, Role)) - own
    others = {name for name in names if not name.startswith("captf_")}
    asked = Asked(store, resource)
    for name in sorted(own):
        with pytest.raises(Invalid):
            asked.create(variables={name: 1})
    asked.create(variables=dict.fromkeys(sorted(others), 1))


def test_the_variables_of_a_machine_are_compared_as_json(store: EmbeddedStore) -> None:
    machine = Asked(store, TERRAFORM_MACHINES)
    machine.create(variables={"a": 1, "b": {"c": [1, 2], "d": None}})
    machine.change(variables={"b": {"d": None, "c": [1, 2]}, "a": 1})
    for changed in (
        {"a": 2, "b": {"c": [1, 2], "d": None}},
        {"a": 1, "b": {"c": [2, 1], "d": None}},
        {"a": 1, "b": {"c": [1, 2]}},
        {"a": "1", "b": {"c": [1, 2], "d": None}},
        None,
    ):
        with pytest.raises(Invalid, match="variables: is immutable: create another machine"):
            machine.change(variables=changed)


def test_a_machine_without_variables_gets_none_later(store: EmbeddedStore) -> None:
    machine = Asked(store, TERRAFORM_MACHINES)
    machine.create()
    with pytest.raises(Invalid, match="immutable"):
        machine.change(variables={"a": 1})
    machine.change(deletionPolicy="Retain")


def test_the_variables_of_a_pool_may_change(store: EmbeddedStore) -> None:
    pool = Asked(store, TERRAFORM_MACHINE_POOLS)
    pool.create(variables={"a": 1})
    pool.change(variables={"a": 2}, providerIDList=["x"])


class TestProviderID:
    """Who sets it: what the embedded server allows everybody, a real one allows the manager."""

    def test_the_manager_sets_it_once(self, store: EmbeddedStore) -> None:
        machine = Asked(store, TERRAFORM_MACHINES)
        machine.create()
        machine.change(providerID="a")
        for other in ("b", None):
            with pytest.raises(Invalid, match="providerID is immutable once it is set"):
                machine.change(providerID=other)

    def test_somebody_else_does_not(
        self, store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        machine = Asked(store, TERRAFORM_MACHINES)
        machine.create()
        monkeypatch.setitem(admission.AUTHORIZER, "allowed", lambda _: False)  # type: ignore[arg-type]
        with pytest.raises(Invalid, match=r"spec\.providerID: is set by the manager"):
            machine.change(providerID="a")
        machine.change(deletionPolicy="Retain")

    def test_a_machine_may_be_created_with_one_and_changed_elsewhere(
        self, store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(admission.AUTHORIZER, "allowed", lambda _: False)  # type: ignore[arg-type]
        machine = Asked(store, TERRAFORM_MACHINES)
        machine.create(providerID="a")
        machine.change(deletionPolicy="Retain")

    def test_a_machine_template_has_none(self, store: EmbeddedStore) -> None:
        with pytest.raises(Invalid, match=r"spec.template.spec.providerID: must not be set"):
            Asked(store, TERRAFORM_MACHINE_TEMPLATES).create(providerID="a")


@every_template
def test_the_spec_of_a_template_never_changes(
    store: EmbeddedStore, resource: Resource[Any]
) -> None:
    template = Asked(store, resource)
    template.create(variables={"a": 1})
    for changed in ({"variables": {"a": 2}}, {"variables": None}, {"deletionPolicy": "Retain"}):
        with pytest.raises(Invalid, match=f"is immutable: create another {resource.kind}"):
            template.change(**changed)
    template.change(note="example.com/mine")


@every_template
def test_only_a_dry_run_of_a_topology_may_ask_what_a_changed_template_would_be(
    store: EmbeddedStore, resource: Resource[Any]
) -> None:
    template = Asked(store, resource)
    template.create(variables={"a": 1})
    dry = WriteOptions(dry_run=True)
    template.change(dry, note=DRY_RUN, variables={"a": 2})
    with pytest.raises(Invalid, match="is immutable"):
        template.change(dry, variables={"a": 2})
    with pytest.raises(Invalid, match="is immutable"):
        template.change(note=DRY_RUN, variables={"a": 2})


def test_a_cluster_template_needs_no_identity_and_keeps_no_endpoint_rules_of_a_cluster(
    store: EmbeddedStore,
) -> None:
    template = Asked(store, TERRAFORM_CLUSTER_TEMPLATES)
    template.create(controlPlaneEndpoint={"host": "a.example.com", "port": 6443})
    other = {"host": "b.example.com", "port": 6443}
    template.change(WriteOptions(dry_run=True), note=DRY_RUN, controlPlaneEndpoint=other)


def test_a_cluster_template_without_an_identity_is_admitted_with_a_warning(
    store: EmbeddedStore,
) -> None:
    template = Asked(store, TERRAFORM_CLUSTER_TEMPLATES)
    (warning,) = template.create()
    assert "spec.template.spec.identityRef: is not set: clusters made from this" in warning
    assert template.create(identityRef={"name": "cloud"}, name="second") == ()


def test_templates_of_what_inherits_an_identity_need_none(store: EmbeddedStore) -> None:
    for resource in (TERRAFORM_MACHINE_TEMPLATES, TERRAFORM_MACHINE_POOL_TEMPLATES):
        assert Asked(store, resource).create() == ()


def test_a_pool_template_may_hold_what_only_the_controller_sets(store: EmbeddedStore) -> None:
    Asked(store, TERRAFORM_MACHINE_POOL_TEMPLATES).create(providerID="a", providerIDList=["b"])


class TestCapacity:
    """`spec.capacity` of a machine template (api.md: Capacity)."""

    def machine_template(self, capacity: dict[str, Any]) -> Document:
        return {
            "apiVersion": TERRAFORM_MACHINE_TEMPLATES.api_version,
            "kind": TERRAFORM_MACHINE_TEMPLATES.kind,
            "metadata": {"name": "prod"},
            "spec": {
                "template": {"spec": {"source": {"image": "registry.example.com/a:v1"}}},
                "capacity": capacity,
            },
        }

    def served(self, store: EmbeddedStore) -> Served:
        kind = TERRAFORM_MACHINE_TEMPLATES
        served = store.registry.find_kind(kind.api_version, kind.kind)
        assert served is not None
        return served

    def test_it_may_change_although_the_spec_of_the_machines_may_not(
        self, store: EmbeddedStore
    ) -> None:
        served = self.served(store)
        store.create(served, self.machine_template({"cpu": 4, "memory": "8Gi"}), "default")

        def larger(stored: Document) -> Document:
            stored["spec"]["capacity"] = {"cpu": "7500m", "memory": "1.5e9"}
            return stored

        store.modify(served, "prod", "default", larger, options=WriteOptions())

    @pytest.mark.parametrize("amount", ["much", "8 Gi", "", "8GiB", "-1", "0x10"])
    def test_an_amount_that_is_none_is_refused(self, store: EmbeddedStore, amount: str) -> None:
        document = self.machine_template({"memory": amount})
        with pytest.raises(Invalid, match=r"spec\.capacity"):
            store.create(self.served(store), document, "default")


# What servers refuse of labels and annotations turns on lengths and on the ends of parts.
_ENDS = st.sampled_from(["a", "Z", "9", "-", "_", ".", "", "é"])
_MIDDLES = st.one_of(
    st.text("aZ9-_.", max_size=6),
    st.integers(59, 64).map("a".__mul__),
    st.sampled_from(["a/b", "a..b", " ", "\n"]),
)
_PARTS = st.tuples(_ENDS, _MIDDLES, _ENDS).map("".join)
_PREFIXES = st.one_of(
    st.sampled_from(["", "example.com/", "Example.com/", "a..b/", "-a/", "a_b/", "/", "a/b/"]),
    st.integers(250, 254).map(lambda length: "a" * length + "/"),
)
_KEYS = st.tuples(_PREFIXES, _PARTS).map("".join)


@pytest.fixture(scope="module")
def lasting_store() -> Iterator[EmbeddedStore]:
    found = scratch_store(FakeClock(), (*crds(), *policies()))
    yield found
    found.close()


@example("labels", "a" * 63, "b" * 63)
@example("labels", "a" * 64, "")
@example("labels", "a", "b" * 64)
@example("labels", "a" * 253 + "/b", "")
@example("labels", "a" * 254 + "/b", "")
@example("labels", "Example.com/a", "")
@example("annotations", "Example.com/a", "any, at all")
@example("annotations", "a b", "")
@given(where=st.sampled_from(["labels", "annotations"]), key=_KEYS, value=_PARTS)
def test_a_template_may_hold_the_labels_and_annotations_that_an_object_may_have(
    lasting_store: EmbeddedStore, where: str, key: str, value: str
) -> None:
    store, dry = lasting_store, WriteOptions(dry_run=True)
    marks = {where: {key: value}}
    source = {"source": {"image": "registry.example.com/a:v1"}}
    documents = [
        {"metadata": {"name": "prod", **marks}, "spec": source},
        {"metadata": {"name": "prod"}, "spec": {"template": {"metadata": marks, "spec": source}}},
    ]
    taken = []
    for resource, document in zip(
        (TERRAFORM_MACHINES, TERRAFORM_MACHINE_TEMPLATES), documents, strict=True
    ):
        served = store.registry.find_kind(resource.api_version, resource.kind)
        assert served is not None
        document |= {"apiVersion": resource.api_version, "kind": resource.kind}
        try:
            store.create(served, document, "default", options=dry)
        except Invalid as refused:
            taken.append(False)
            if resource is TERRAFORM_MACHINE_TEMPLATES:
                assert f"spec.template.metadata.{where}[" in str(refused)
        else:
            taken.append(True)
    assert taken[0] == taken[1]
