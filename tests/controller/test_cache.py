"""The cache of an informer: what readers get, and what they find by."""

import threading

import pytest

from captfctl.controller.cache import Cache
from captfctl.model.core import ConfigMap
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import CONFIG_MAPS
from captfctl.runs.reader import slim
from captfctl.runs.stuck import main_image
from captfctl.terraform.job.build import build_job
from tests.support.clock import DEADLINE
from tests.support.runs import RUNNER, run_spec

A, B = ("ns", "a"), ("ns", "b")


def config_map(name: str, colour: str = "red") -> ConfigMap:
    return ConfigMap(
        metadata=ObjectMeta(namespace="ns", name=name, labels={"colour": colour}),
        data={"k": "v"},
    )


@pytest.fixture
def cache():
    def colour(obj: ConfigMap):
        return (obj.metadata.labels["colour"],)

    return Cache(CONFIG_MAPS, {"colour": colour})


def test_what_a_reader_changes_is_not_changed_for_others(cache):
    cache.put(A, config_map("a"))
    cache.get(A).data["k"] = "changed"
    cache.list()[0].data["k"] = "changed"
    cache.by_index("colour", "red")[0].data["k"] = "changed"
    assert cache.get(A).data == {"k": "v"}


def test_a_later_change_of_what_was_put_in_changes_nothing(cache):
    obj = config_map("a")
    cache.put(A, obj)
    obj.data["k"] = "changed"
    assert cache.get(A).data == {"k": "v"}


def test_an_index_follows_changes_and_tells_keys_in_order(cache):
    cache.put(B, config_map("b"))
    cache.put(A, config_map("a"))
    assert cache.keys_by_index("colour", "red") == [A, B]
    change = cache.put(A, config_map("a", "blue"))
    assert (change.old.metadata.labels, change.new.metadata.labels) == (
        {"colour": "red"},
        {"colour": "blue"},
    )
    assert cache.keys_by_index("colour", "red") == [B]
    assert cache.keys_by_index("colour", "blue") == [A]
    cache.remove(B)
    assert cache.keys_by_index("colour", "red") == []
    with pytest.raises(KeyError):
        cache.keys_by_index("shape", "red")


def test_an_object_that_is_replaced_is_never_missing_meanwhile(cache):
    cache.put(A, config_map("a"))
    stop, missing = threading.Event(), []

    def read():
        while not stop.is_set():
            if cache.get(A) is None or A not in cache:
                missing.append(1)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(2000):
        cache.put(A, config_map("a", str(number)))
    stop.set()
    reader.join(DEADLINE)
    assert not missing


def test_a_slim_job_keeps_what_is_read_of_it():
    owner = Owner("TerraformCluster", "team-a", "prod", "uid", "prod")
    whole = build_job(run_spec(owner), RUNNER)
    image, deadline = main_image(whole), whole.spec.active_deadline_seconds
    metadata = whole.metadata
    kept = slim(whole)
    assert main_image(kept) == image
    assert kept.spec.active_deadline_seconds == deadline
    assert kept.metadata == metadata
    assert not kept.spec.template.spec.volumes
