"""Deleting: finalizers, preconditions, propagation policies, grace periods."""

import contextlib

import pytest

from captfctl.cluster.door import Propagation
from captfctl.cluster.errors import Conflict, Invalid, NotFound
from captfctl.model.core import Container, Job, JobSpec, PodSpec, PodTemplate
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import JOBS
from tests.contract.widgets import changes, make, version

FINALIZER = "contract.test/hold"
OTHER = "contract.test/other"


def held(name="a", *finalizers, **metadata):
    return make(name, {"x": 1}, finalizers=list(finalizers or (FINALIZER,)), **metadata)


def is_gone(door, resource, namespace, name="a") -> bool:
    try:
        door.get(resource, name, namespace)
    except NotFound:
        return True
    return False


def test_an_object_without_finalizers_goes_at_once(door, namespace, widget):
    door.create(widget, make("a"), namespace)
    door.delete(widget, "a", namespace)
    assert is_gone(door, widget, namespace)


def test_deleting_what_does_not_exist_is_refused(door, namespace, widget):
    with pytest.raises(NotFound) as caught:
        door.delete(widget, "nobody", namespace)
    assert f'{widget.name} "nobody" not found' in str(caught.value)


def test_a_finalizer_keeps_the_object_and_marks_it(door, namespace, widget):
    made = door.create(widget, held(), namespace)
    assert "deletionTimestamp" not in made["metadata"]
    door.delete(widget, "a", namespace)
    marked = door.get(widget, "a", namespace)["metadata"]
    assert marked["deletionTimestamp"]
    assert marked["deletionGracePeriodSeconds"] == 0
    assert marked["finalizers"] == [FINALIZER]
    assert int(marked["resourceVersion"]) > int(version(made))
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": None}})


def test_marking_counts_as_a_change_of_the_wish(door, namespace, widget):
    door.create(widget, held(), namespace)
    door.delete(widget, "a", namespace)
    assert door.get(widget, "a", namespace)["metadata"]["generation"] == 2
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": None}})


def test_removing_the_last_finalizer_removes_the_object(door, namespace, widget):
    door.create(widget, held("a", FINALIZER, OTHER), namespace)
    door.delete(widget, "a", namespace)
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": [OTHER]}})
    assert not is_gone(door, widget, namespace)
    last = door.patch(widget, "a", namespace, {"metadata": {"finalizers": []}})
    assert last["metadata"]["name"] == "a"
    assert is_gone(door, widget, namespace)


def test_an_object_without_mark_survives_the_loss_of_its_finalizers(door, namespace, widget):
    door.create(widget, held(), namespace)
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": None}})
    assert not is_gone(door, widget, namespace)


def test_a_second_delete_of_a_marked_object_changes_nothing(door, namespace, widget):
    door.create(widget, held(), namespace)
    door.delete(widget, "a", namespace)
    marked = door.get(widget, "a", namespace)
    door.delete(widget, "a", namespace)
    assert door.get(widget, "a", namespace) == marked
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": None}})


def test_a_marked_object_takes_no_new_finalizer(door, namespace, widget):
    door.create(widget, held(), namespace)
    door.delete(widget, "a", namespace)
    with pytest.raises(Invalid) as caught:
        door.patch(widget, "a", namespace, {"metadata": {"finalizers": [FINALIZER, OTHER]}})
    assert {cause.field for cause in caught.value.causes} == {"metadata.finalizers"}
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": None}})


def test_a_mark_cannot_be_taken_back(door, namespace, widget):
    door.create(widget, held(), namespace)
    door.delete(widget, "a", namespace)
    marked = door.get(widget, "a", namespace)
    before = marked["metadata"].pop("deletionTimestamp")
    marked["spec"] = {"x": 2}
    after = door.update(widget, marked)["metadata"]
    assert after["deletionTimestamp"] == before
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": None}})


def test_a_marked_object_can_still_be_changed(door, namespace, widget):
    door.create(widget, held(), namespace)
    door.delete(widget, "a", namespace)
    assert door.patch(widget, "a", namespace, {"spec": {"x": 2}})["spec"] == {"x": 2}
    reported = door.patch(widget, "a", namespace, {"status": {"n": 1}}, subresource="status")
    assert reported["status"] == {"n": 1}
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": None}})


def test_a_writer_cannot_mark_an_object(door, namespace, widget):
    door.create(widget, held(), namespace)
    stamp = {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}
    with contextlib.suppress(Invalid):
        door.patch(widget, "a", namespace, stamp)
    assert "deletionTimestamp" not in door.get(widget, "a", namespace)["metadata"]


def test_another_uid_is_not_deleted(door, namespace, widget):
    first = door.create(widget, make("a"), namespace)["metadata"]["uid"]
    door.delete(widget, "a", namespace)
    second = door.create(widget, make("a"), namespace)["metadata"]["uid"]
    with pytest.raises(Conflict):
        door.delete(widget, "a", namespace, uid=first)
    assert not is_gone(door, widget, namespace)
    door.delete(widget, "a", namespace, uid=second)
    assert is_gone(door, widget, namespace)


def test_another_version_is_not_deleted(door, namespace, widget):
    made = door.create(widget, make("a", {"x": 1}), namespace)
    changed = door.patch(widget, "a", namespace, {"spec": {"x": 2}})
    with pytest.raises(Conflict):
        door.delete(widget, "a", namespace, resource_version=version(made))
    assert not is_gone(door, widget, namespace)
    door.delete(widget, "a", namespace, resource_version=version(changed))
    assert is_gone(door, widget, namespace)


def test_background_leaves_nothing_of_the_object(door, namespace, widget):
    door.create(widget, make("a"), namespace)
    door.delete(widget, "a", namespace, propagation=Propagation.BACKGROUND)
    assert is_gone(door, widget, namespace)


@pytest.mark.parametrize(
    ("policy", "finalizer"),
    [(Propagation.FOREGROUND, "foregroundDeletion"), (Propagation.ORPHAN, "orphan")],
)
def test_a_policy_is_written_down_for_the_garbage_collector(
    door, namespace, widget, policy, finalizer
):
    door.create(widget, held(), namespace)
    with door.watch(widget, namespace) as watch:
        events = changes(watch)
        assert next(events).object["metadata"]["finalizers"] == [FINALIZER]
        door.delete(widget, "a", namespace, propagation=policy)
        marked = next(events).object["metadata"]
    assert marked["deletionTimestamp"]
    assert marked["finalizers"] == [FINALIZER, finalizer]
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": None}})


def test_deleting_a_job_does_not_orphan_its_pods(door, namespace):
    """The door's default is the background, for Jobs too."""
    container = Container(name="main", image="example.test/none:1")
    spec = PodSpec(restart_policy="Never", containers=[container])
    job = Job(
        metadata=ObjectMeta(name="a"),
        spec=JobSpec(suspend=True, template=PodTemplate(spec=spec)),
    )
    door.create(JOBS, job, namespace)
    door.delete(JOBS, "a", namespace, propagation=Propagation.BACKGROUND)
    assert is_gone(door, JOBS, namespace)


def test_a_name_is_free_again_after_the_object_is_gone(door, namespace, widget):
    first = door.create(widget, held(), namespace)
    door.delete(widget, "a", namespace)
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": None}})
    second = door.create(widget, make("a"), namespace)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert second["metadata"]["generation"] == 1
