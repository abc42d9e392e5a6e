"""The inputs of the cluster role, built from the objects (module-contract.md: Inputs)."""

import pytest

from captfctl.model import keys
from captfctl.model.capi import Endpoint
from captfctl.model.terraform import ControlPlaneEndpoint
from captfctl.terraform.contract.build import (
    EndpointSourceChange,
    build_cluster_inputs,
    endpoint_input_was_null,
)
from captfctl.terraform.contract.errors import ContractError
from captfctl.terraform.contract.render import render
from tests.contract_module.objects import capi_cluster, terraform_cluster

ENDPOINT = {"host": "api.example.com", "port": 6443}
WITH_ENDPOINT = {"spec": {"controlPlaneEndpoint": ENDPOINT}}
KEEP = EndpointSourceChange.KEEP


def build(obj=None, cluster=None, previous=None, source=None):
    obj = obj or terraform_cluster()
    if source is not None:
        obj.metadata.annotations[keys.ENDPOINT_SOURCE] = source
    return build_cluster_inputs(obj, capi_cluster(cluster), previous)


def values(**arguments):
    return build(**arguments).inputs.values()


def test_names_and_tags_come_from_the_objects():
    found = values()
    assert found["captf_contract"] == "v1alpha1"
    assert found["captf_cluster"] == {"name": "prod", "namespace": "team-a"}
    assert found["captf_object"] == {
        "kind": "TerraformCluster",
        "name": "prod",
        "namespace": "team-a",
    }
    assert found["captf_tags"] == {
        "captf.io/cluster": "prod",
        "captf.io/namespace": "team-a",
        "captf.io/kind": "TerraformCluster",
        "captf.io/name": "prod",
        "captf.io/managed-by": "captf",
        "captf.io/template": "",
    }


def test_the_template_tag_is_the_template_that_was_cloned():
    obj = terraform_cluster()
    obj.metadata.annotations[keys.CLONED_FROM_NAME] = "prod-cluster"
    assert values(obj=obj)["captf_tags"]["captf.io/template"] == "prod-cluster"


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (None, None),
        ({}, None),
        ({"pods": {"cidrBlocks": []}, "serviceDomain": "", "apiServerPort": 0}, None),
        (
            {"apiServerPort": 8443},
            {"pods": [], "services": [], "service_domain": None, "api_server_port": 8443},
        ),
        (
            {"pods": {"cidrBlocks": ["10.0.0.0/8"]}, "serviceDomain": "cluster.local"},
            {
                "pods": ["10.0.0.0/8"],
                "services": [],
                "service_domain": "cluster.local",
                "api_server_port": None,
            },
        ),
    ],
)
def test_the_network_is_null_only_when_nothing_of_it_is_set(network, expected):
    cluster = {"spec": {"clusterNetwork": network} if network is not None else {}}
    assert values(cluster=cluster)["cluster_network"] == expected


@pytest.mark.parametrize(
    ("version", "expected"), [("v1.36.2+rke2r1", "v1.36.2+rke2r1"), ("", None)]
)
def test_the_version_is_the_topologys(version, expected):
    cluster = {"spec": {"topology": {"version": version}}}
    assert values(cluster=cluster)["kubernetes_version"] == expected
    assert values()["kubernetes_version"] is None


def test_an_endpoint_of_the_module_is_never_fed_back():
    result = build(cluster=WITH_ENDPOINT, source="module", previous=b"{}")
    assert result.inputs.control_plane_endpoint is None
    assert result.endpoint_source is KEEP


def test_an_endpoint_before_the_first_apply_is_the_users():
    result = build(cluster=WITH_ENDPOINT)
    assert result.inputs.control_plane_endpoint == Endpoint(**ENDPOINT)
    assert result.endpoint_source is EndpointSourceChange.RECORD_USER


def test_an_endpoint_after_the_first_apply_has_no_recorded_source():
    result = build(cluster=WITH_ENDPOINT, previous=b'{"control_plane_endpoint": null}')
    assert result.inputs.control_plane_endpoint == Endpoint(**ENDPOINT)
    assert result.endpoint_source is KEEP


def test_an_endpoint_that_the_user_took_back_in_time_is_forgotten():
    result = build(source="user")
    assert result.inputs.control_plane_endpoint is None
    assert result.endpoint_source is EndpointSourceChange.REMOVE
    assert build(source="user", previous=b"{}").endpoint_source is KEEP


def test_building_only_proposes_the_annotation():
    obj = terraform_cluster()
    assert build(obj=obj, cluster=WITH_ENDPOINT).endpoint_source is not KEEP
    assert keys.ENDPOINT_SOURCE not in obj.metadata.annotations


def test_the_clusters_endpoint_comes_before_the_objects_own():
    obj = terraform_cluster(
        control_plane_endpoint=ControlPlaneEndpoint(host="own.example.com", port=1)
    )
    assert build(obj=obj).inputs.control_plane_endpoint == Endpoint(host="own.example.com", port=1)
    both = build(obj=obj, cluster=WITH_ENDPOINT)
    assert both.inputs.control_plane_endpoint == Endpoint(**ENDPOINT)
    half = build(obj=obj, cluster={"spec": {"controlPlaneEndpoint": {"host": "x"}}})
    assert half.inputs.control_plane_endpoint == Endpoint(host="own.example.com", port=1)


@pytest.mark.parametrize(
    ("status", "previous", "expected"),
    [
        ({}, None, False),
        ({"initialization": {"controlPlaneInitialized": True}}, None, True),
        ({"initialization": {"controlPlaneInitialized": False}}, None, False),
        ({}, b'{"control_plane_initialized": true}', True),
        ({}, b'{"control_plane_initialized": false}', False),
        ({}, b"{}", False),
    ],
)
def test_once_initialised_a_control_plane_stays_so(status, previous, expected):
    found = values(cluster={"status": status}, previous=previous)
    assert found["control_plane_initialized"] is expected


@pytest.mark.parametrize("broken", [b"{", b"[]", b"\xff"])
def test_a_record_that_cannot_be_read_is_an_error_without_its_content(broken):
    for read in (build_from, endpoint_input_was_null):
        with pytest.raises(ContractError, match="recorded inputs"):
            read(broken)


def build_from(previous):
    return build(previous=previous)


def test_the_last_rendered_endpoint_is_read_from_the_record():
    assert not endpoint_input_was_null(None)
    without, with_endpoint = build(), build(cluster=WITH_ENDPOINT)
    assert endpoint_input_was_null(render(without.inputs, {}).tfvars_json)
    assert not endpoint_input_was_null(render(with_endpoint.inputs, {}).tfvars_json)
