"""Bodies that Go clients send as protobuf."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.cluster.errors import BadRequest
from captfctl.embedded.apiserver import protobuf
from tests.apiserver.wire import block, entry, envelope, number, varint


def test_a_secret():
    metadata = (
        block(1, "s")
        + block(2, "")  # Go writes empty text as well
        + block(3, "default")
        + number(7, 0)
        + block(8, b"")  # no creation time
        + block(11, entry("a", "b"))
        + block(11, entry("c", "d"))
    )
    body = block(1, metadata) + block(2, entry("k", "v")) + block(3, "Opaque") + number(5, 0)
    assert protobuf.decode(envelope("v1", "Secret", body)) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default", "labels": {"a": "b", "c": "d"}},
        "data": {"k": "dg=="},
        "type": "Opaque",
        "immutable": False,  # optional in Go: false is something else than absent
    }


def test_a_job_with_its_special_types():
    limits = block(1, entry("cpu", block(2, block(1, "500m"))))
    probe = block(1, block(3, block(1, number(1, 0) + number(2, 8080))))  # tcpSocket.port: 8080
    named = block(1, block(3, block(1, number(1, 1) + number(2, 0) + block(3, "web"))))
    container = block(1, "main") + block(8, limits) + block(10, probe) + block(11, named)
    volume = block(1, "scratch") + block(2, block(2, b""))  # emptyDir: {}
    pod = block(1, volume) + block(2, container) + number(4, -1)
    spec = number(7, 0) + block(6, block(1, b"") + block(2, pod))
    status = block(2, number(1, 1_700_000_000) + number(2, 0))
    found = protobuf.decode(
        envelope("batch/v1", "Job", block(1, block(1, "j")) + block(2, spec) + block(3, status))
    )
    assert found["spec"] == {
        "backoffLimit": 0,
        "template": {
            "spec": {
                "volumes": [{"name": "scratch", "emptyDir": {}}],
                "containers": [
                    {
                        "name": "main",
                        "resources": {"limits": {"cpu": "500m"}},
                        "livenessProbe": {"tcpSocket": {"port": 8080}},
                        "readinessProbe": {"tcpSocket": {"port": "web"}},
                    }
                ],
                "terminationGracePeriodSeconds": -1,
            }
        },
    }
    assert found["status"] == {"startTime": "2023-11-14T22:13:20Z"}


def test_a_lease_keeps_its_microseconds():
    renewed = block(4, number(1, 1_700_000_000) + number(2, 123_456_000))
    body = block(1, block(1, "l")) + block(2, block(1, "me") + number(2, 15) + renewed)
    found = protobuf.decode(envelope("coordination.k8s.io/v1", "Lease", body))
    assert found["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "2023-11-14T22:13:20.123456Z",
    }


def test_delete_options_of_any_group():
    body = number(1, 0) + block(2, block(1, "u")) + block(4, "Orphan") + block(5, "All")
    for version in ("v1", "batch/v1", "example.io/v1"):
        assert protobuf.decode(envelope(version, "DeleteOptions", body)) == {
            "apiVersion": version,
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"},
            "propagationPolicy": "Orphan",
            "dryRun": ["All"],
        }


def test_a_definition_with_what_is_a_schema_or_something_else():
    schema = (
        block(5, "object")
        + block(8, block(1, "1"))  # default: JSON
        + block(24, block(1, block(5, "string")))  # items: one schema
        + block(30, number(1, 0))  # additionalProperties: false
        + block(32, entry("a", block(2, block(2, "b") + block(2, "c"))))  # dependencies: names
        + block(32, entry("d", block(2, block(1, block(5, "string")))))  # a schema
    )
    version = block(1, "v1") + number(2, 1) + number(3, 1) + block(4, block(1, schema))
    body = block(1, block(1, "w")) + block(2, block(1, "example.io") + block(7, version))
    found = protobuf.decode(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", body))
    assert found["spec"]["versions"] == [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "default": 1,
                    "items": {"type": "string"},
                    "additionalProperties": False,
                    "dependencies": {"a": ["b", "c"], "d": {"type": "string"}},
                }
            },
        }
    ]


def test_unknown_fields_are_passed_over():
    extra = number(900, 5) + block(901, "x") + varint(902 << 3 | 1) + struct.pack("<d", 1.5)
    extra += varint(903 << 3 | 5) + b"\x00" * 4
    found = protobuf.decode(envelope("v1", "ConfigMap", extra + block(2, entry("k", "v"))))
    assert found["data"] == {"k": "v"}


def test_a_kind_that_is_not_known_is_refused():
    with pytest.raises(BadRequest, match="can only be sent as JSON"):
        protobuf.decode(envelope("apps/v1", "Deployment", b""))


@given(st.binary(max_size=60))
def test_damaged_bodies_are_bad_requests(content):
    for body in (content, protobuf.MAGIC + content, envelope("v1", "Pod", content)):
        try:
            protobuf.decode(body)
        except BadRequest:
            continue
