"""The one file of built-in types has what the store, the API server and described files need."""

from collections import Counter

import pytest

from captfctl.clock import SystemClock
from captfctl.embedded.apiserver import openapi
from captfctl.embedded.schemas import builtin, node_of
from captfctl.embedded.schemas.builtin import Form
from captfctl.embedded.store import EmbeddedStore
from captfctl.embedded.store.decoding import read

NAMES = list(builtin.names())


def innermost(shape):
    while shape.item is not None:
        shape = shape.item
    return shape


@pytest.fixture(scope="module")
def builtin_kinds():
    store = EmbeddedStore.in_memory(SystemClock())
    return [served for served in store.registry if not served.custom]


def test_every_type_that_a_field_names_is_there():
    for name in NAMES:
        for field in builtin.struct(name).fields.values():
            shape = innermost(field.shape)
            assert shape.form is Form.SCALAR or shape.name in NAMES


def test_every_built_in_kind_that_is_served_has_its_type(builtin_kinds):
    for served in builtin_kinds:
        resource = served.resource
        name = builtin.name_of(resource.group, resource.version, resource.kind)
        assert {"apiVersion", "kind", "metadata"} <= set(builtin.struct(name).fields)
        assert served.schema is node_of(name)
        assert served.schema.value_of("metadata") is node_of(builtin.OBJECT_META)


def test_no_two_fields_of_a_message_have_one_number():
    for name in NAMES:
        numbers = Counter(
            (*field.within, field.number)
            for field in builtin.struct(name).fields.values()
            if field.number
        )
        assert not numbers or max(numbers.values()) == 1, name


def test_only_type_and_version_have_no_number():
    for name in NAMES:
        for key, field in builtin.struct(name).fields.items():
            assert field.number or key in ("apiVersion", "kind"), (name, key)


def test_lists_of_kind_map_name_keys_that_their_items_have():
    for name in NAMES:
        for field in builtin.struct(name).fields.values():
            if field.list == "map":
                item = builtin.struct(field.shape.item.name)
                assert field.keys
                assert set(field.keys) <= set(item.fields)
            else:
                assert not field.keys


def test_the_published_documents_refer_to_nothing_that_they_lack():
    for name in NAMES:
        schemas = {}
        openapi._add_builtin(name, schemas)
        assert references(schemas) <= {f"#/components/schemas/{known}" for known in schemas}


def references(value):
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_what_is_written_when_nothing_is_set_can_be_read():
    for name in NAMES:
        empty = builtin.unset(name)
        unknown = []
        read(name, empty, unknown)
        assert not unknown
        required = set(builtin.struct(name).required)
        assert {key for key in required if builtin.struct(name).fields[key].always} <= set(empty)


def test_facts_that_were_looked_up_by_hand():
    status = builtin.unset("io.k8s.api.core.v1.ContainerStatus")
    assert status == {
        "image": "",
        "imageID": "",
        "lastState": {},
        "name": "",
        "ready": False,
        "restartCount": 0,
        "state": {},
    }
    assert builtin.unset("io.k8s.api.core.v1.PodSpec") == {"containers": None}
    job = builtin.struct("io.k8s.api.batch.v1.JobSpec").fields
    assert job["backoffLimit"].type == "*int32"
    volume = builtin.struct("io.k8s.api.core.v1.Volume").fields
    assert (volume["emptyDir"].within, volume["emptyDir"].number) == ((2,), 2)
    lease = builtin.struct("io.k8s.api.coordination.v1.LeaseSpec").fields
    assert lease["renewTime"].type == "*microtime"
