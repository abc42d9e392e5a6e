"""When the hash of the inputs changes (api.md: The inputs hash)."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.model.capi import Endpoint
from captfctl.terraform.contract.hashing import (
    _document,
    approval_hash,
    exports_hash,
    hashable,
    inputs_hash,
)
from captfctl.terraform.contract.jsontext import NotAnInteger, canonical_int, parse
from captfctl.terraform.contract.values import Autoscaling, Network
from captfctl.terraform.contract.variables import UserVariable
from tests.contract_module.objects import EXPORTS, cluster_inputs, machine_inputs, pool_inputs

MACHINE_IMAGE = "ghcr.io/example/machine-module:v1.2.3"
CLUSTER_IMAGE = "ghcr.io/example/cluster-module:v1"


def prod_cluster(template=""):
    return cluster_inputs(
        template=template,
        control_plane_endpoint=Endpoint(host="api.prod.example.com", port=6443),
        kubernetes_version="v1.36.2",
        cluster_network=Network(pods=("192.168.0.0/16",)),
    )


def test_the_hash_of_a_machine():
    assert inputs_hash(MACHINE_IMAGE, machine_inputs(), {}) == (
        "h2:e10a5fcbec6ca2745898f8cae279211c217179b1d90afa7e2ce09fb3e24b64b4"
    )


def test_the_hashed_text_of_a_machine():
    text = canonical_int(_document(MACHINE_IMAGE, machine_inputs(), {}))
    assert text.startswith(
        '{"contract":"v1alpha1","image":"ghcr.io/example/machine-module:v1.2.3",'
        '"inputs":{"bootstrap_data":"I2Nsb3VkLWNvbmZpZw==",'
    )
    assert text.endswith('"machine_name":"prod-md-0-abcde-xyz12"},"role":"machine","scheme":"h2"}')


def test_the_hash_of_a_machine_with_user_variables():
    variables = {
        "db_password": UserVariable(value="s3cr3t", sensitive=True),
        "ratio": UserVariable(value=parse("0.5")),
    }
    assert inputs_hash(MACHINE_IMAGE, machine_inputs(), variables) == (
        "h2:7410c7327a98e0065f74c75ca02365c6af4eee13c3a16c40cbe794cfbc263d37"
    )


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("", "h2:e057bf0fe687450cd876f667c8c94190fc3dc996d31bd53f0ac384a9256c931f"),
        ("prod-cluster", "h2:e749d244b8cd779f37ebeab8e670fdc0c9da879fad1b2455f0459bd438eb6817"),
    ],
)
def test_the_hash_of_a_cluster_and_of_one_from_a_template(template, expected):
    assert inputs_hash(CLUSTER_IMAGE, prod_cluster(template), {}) == expected


def test_the_hash_of_exports():
    assert exports_hash(EXPORTS) == (
        "h2:6b391921d8f29ffd1ab31552d693202b4c18a2e6254e3f4d2e003ed0ef1541df"
    )
    empty = "h2:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert exports_hash({}) == exports_hash(None) == empty


def test_exports_with_a_fraction_have_a_hash_but_cannot_be_an_input():
    exports = parse('{"ratio": 1.5}')
    assert exports_hash(exports).startswith("h2:")
    assert not hashable(exports)
    with pytest.raises(NotAnInteger):
        inputs_hash(MACHINE_IMAGE, machine_inputs(cluster_outputs=exports), {})


def test_every_digit_of_a_large_number_counts():
    one, other = (
        machine_inputs(cluster_outputs=parse(f'{{"id": 1234567890123456789012{last}}}'))
        for last in "34"
    )
    assert inputs_hash("i", one, {}) != inputs_hash("i", other, {})


def test_a_user_variable_may_be_a_fraction_and_keeps_its_spelling():
    one, other = ({"ratio": UserVariable(value=parse(text))} for text in ("0.5", "0.50"))
    assert inputs_hash("i", prod_cluster(), one) != inputs_hash("i", prod_cluster(), other)


def test_a_variable_that_becomes_secret_changes_the_hash():
    one, other = ({"a": UserVariable(value="x", sensitive=s)} for s in (False, True))
    assert inputs_hash("i", prod_cluster(), one) != inputs_hash("i", prod_cluster(), other)


def test_no_variables_and_a_null_variable_differ():
    assert inputs_hash("i", prod_cluster(), {}) != inputs_hash(
        "i", prod_cluster(), {"a": UserVariable(value=None)}
    )


def test_the_image_is_hashed_as_it_is_written():
    assert inputs_hash("repo:v1", prod_cluster(), {}) != inputs_hash("repo:v2", prod_cluster(), {})


def test_an_autoscaled_pool_may_be_scaled_without_an_apply():
    on = Autoscaling(enabled=True, min=1, max=9)
    assert _pool(replicas=3, autoscaling=on) == _pool(replicas=5, autoscaling=on)
    assert _pool(replicas=3) != _pool(replicas=5)


def test_rotated_bootstrap_data_keeps_the_approval():
    one, other = pool_inputs(), pool_inputs(bootstrap_data="b3RoZXI=")
    assert inputs_hash("i", one, {}) != inputs_hash("i", other, {})
    assert approval_hash("i", one, {}) == approval_hash("i", other, {})


def test_a_clusters_approval_is_bound_to_its_inputs():
    cluster = prod_cluster()
    assert approval_hash("i", cluster, {}) == inputs_hash("i", cluster, {})


def _pool(**changed):
    return inputs_hash("i", pool_inputs(**changed), {})


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.dictionaries(texts, texts, max_size=5), st.randoms())
def test_the_order_of_keys_does_not_matter(labels, random):
    shuffled = list(labels.items())
    random.shuffle(shuffled)
    assert _pool(node_labels=labels) == _pool(node_labels=dict(shuffled))


CHANGED = {
    "cluster_name": "other",
    "cluster_namespace": "other",
    "name": "other",
    "namespace": "other",
    "template": "other",
    "cluster_outputs": {"other": True},
    "machinepool_name": "other",
    "replicas": 4,
    "bootstrap_data": "b3RoZXI=",
    "bootstrap_format": "ignition",
    "failure_domains": ("other",),
    "cluster_failure_domains": ("other",),
    "kubernetes_version": "v1.0.0",
    "node_labels": {"other": ""},
    "autoscaling": Autoscaling(enabled=True, min=1, max=2),
    "machine_name": "other",
    "failure_domain": None,
    "control_plane": True,
    "control_plane_endpoint": None,
    "control_plane_initialized": True,
    "cluster_network": None,
}


@pytest.mark.parametrize("inputs", [prod_cluster(), machine_inputs(), pool_inputs()])
def test_a_change_of_any_input_changes_the_hash(inputs):
    base = inputs_hash("i", inputs, {})
    hashes = {
        inputs_hash("i", replace(inputs, **{field.name: CHANGED[field.name]}), {})
        for field in fields(inputs)
    }
    assert base not in hashes
    assert len(hashes) == len(fields(inputs))


@given(st.dictionaries(texts, texts | st.none() | st.booleans(), max_size=4), texts)
def test_a_change_of_any_variable_changes_the_hash(values, more):
    variables = {name: UserVariable(value=value) for name, value in values.items()}
    changed = variables | {"extra": UserVariable(value=more)}
    same = changed == variables
    hashes = (inputs_hash("i", prod_cluster(), given) for given in (variables, changed))
    assert (len(set(hashes)) == 1) == same
