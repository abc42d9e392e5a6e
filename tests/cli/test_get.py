"""`captfctl get` of a control plane that is stopped."""

import json

import pytest

from captfctl.clock import SystemClock
from captfctl.embedded.plane import install
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.core import ConfigMap, Secret
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import CONFIG_MAPS, SECRETS


@pytest.fixture
def data(tmp_path):
    """A data directory with a ConfigMap and a Secret in it."""
    store = EmbeddedStore.open(tmp_path / "data" / "store", SystemClock())
    door = store.door()
    install(door)
    meta = ObjectMeta(name="one", namespace="default")
    door.create(CONFIG_MAPS, ConfigMap(metadata=meta))
    door.create(SECRETS, Secret(metadata=meta))
    store.close()
    return str(tmp_path / "data")


def test_objects_are_listed_with_their_namespace(captfctl, data):
    ended = captfctl("get", "configmaps", "--data", data)

    heading, row = ended.out.splitlines()
    assert heading.split() == ["NAMESPACE", "NAME", "DATA", "AGE"]
    assert row.split()[:3] == ["default", "one", "0"]


def test_several_kinds_are_told_apart_by_their_names(captfctl, data):
    ended = captfctl("get", "cm,secrets,jobs", "--data", data)

    assert "configmap/one" in ended.out
    assert "secret/one" in ended.out
    assert "STATUS" not in ended.out  # there is no Job, so no table of Jobs


def test_one_object_by_name_stands_alone_in_json(captfctl, data):
    ended = captfctl("get", "configmap", "one", "--data", data, "-o", "json")

    assert json.loads(ended.out)["kind"] == "ConfigMap"


def test_several_objects_are_a_list_in_json(captfctl, data):
    ended = captfctl("get", "cm,secret", "--data", data, "-o", "json")

    document = json.loads(ended.out)
    assert document["kind"] == "List"
    assert [item["kind"] for item in document["items"]] == ["ConfigMap", "Secret"]


def test_nothing_found_is_said_beside_the_output(captfctl, data):
    ended = captfctl("get", "jobs", "--data", data)

    assert (ended.code, ended.out, ended.err) == (0, "", "No resources found\n")


def test_an_object_that_is_not_there_is_an_error(captfctl, data):
    ended = captfctl("get", "configmap", "two", "--data", data)

    assert ended.code == 1
    assert ended.err.startswith('Error: configmaps "two" not found')
