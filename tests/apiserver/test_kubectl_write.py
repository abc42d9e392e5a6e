"""kubectl's writing commands against the embedded API server."""

import json
import stat

import pytest

from tests.apiserver.conftest import job, widget

pytestmark = pytest.mark.kubectl


def test_applying_creates_configures_and_leaves_alone(kubectl, namespace):
    assert kubectl("apply", "-f", "-", stdin=widget("w", namespace, size=1, image="i")) == (
        "widget.example.io/w created\n"
    )
    before = kubectl.json("get", "wd", "w")
    again = kubectl("apply", "-f", "-", stdin=widget("w", namespace, size=1, image="i"))
    assert again == "widget.example.io/w unchanged\n"
    assert kubectl.json("get", "wd", "w") == before
    assert kubectl("apply", "-f", "-", stdin=widget("w", namespace, size=2)) == (
        "widget.example.io/w configured\n"
    )
    after = kubectl.json("get", "wd", "w")
    assert after["spec"] == {"size": 2, "color": "grey"}
    assert after["metadata"]["generation"] == 2


def test_applying_built_in_kinds(kubectl, namespace):
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"k": "v"},
    }
    assert kubectl("apply", "-f", "-", stdin=secret) == "secret/s created\n"
    before = kubectl.json("get", "secret", "s")
    assert before["data"] == {"k": "dg=="}
    kubectl("apply", "-f", "-", stdin=secret)  # kubectl sends stringData again: nothing changes
    assert kubectl.json("get", "secret", "s") == before
    assert kubectl("apply", "-f", "-", stdin=job("j", namespace)) == "job.batch/j created\n"
    assert kubectl("apply", "-f", "-", stdin=job("j", namespace)) == "job.batch/j unchanged\n"
    paused = job("j", namespace, suspend=True)
    assert kubectl("apply", "-f", "-", stdin=paused) == "job.batch/j configured\n"
    assert kubectl.json("get", "job", "j")["spec"]["suspend"] is True


def test_an_unknown_field_is_refused_before_anything_is_written(kubectl, namespace):
    error = kubectl.fails("apply", "-f", "-", stdin=widget("w", namespace, sise=1))
    assert "BadRequest" in error
    assert 'unknown field "spec.sise"' in error
    assert kubectl.run("get", "wd", "w").returncode != 0
    done = kubectl.run("apply", "--validate=warn", "-f", "-", stdin=widget("w", namespace, sise=1))
    assert done.returncode == 0
    assert 'Warning: unknown field "spec.sise"' in done.stderr


def test_an_unknown_field_of_a_built_in_kind_is_refused(kubectl, namespace):
    error = kubectl.fails("apply", "-f", "-", stdin=job("j", namespace, suspendd=True))
    assert 'unknown field "spec.suspendd"' in error


def test_an_invalid_object_is_refused_naming_the_field(kubectl, namespace):
    error = kubectl.fails("apply", "-f", "-", stdin=widget("w", namespace, size=-1))
    assert 'The Widget "w" is invalid' in error
    assert "spec.size" in error


def test_a_dry_run_writes_nothing(kubectl, namespace):
    text = kubectl("apply", "--dry-run=server", "-f", "-", stdin=widget("w", namespace))
    assert text == "widget.example.io/w created (server dry run)\n"
    assert kubectl.run("get", "wd", "w").returncode != 0
    kubectl("apply", "-f", "-", stdin=widget("w", namespace))
    kubectl("delete", "--dry-run=server", "wd", "w")
    assert kubectl.run("get", "wd", "w").returncode == 0


def test_the_difference_to_a_file_is_shown(kubectl, namespace):
    kubectl("apply", "-f", "-", stdin=widget("w", namespace, size=1))
    done = kubectl.run("diff", "-f", "-", stdin=widget("w", namespace, size=2))
    assert done.returncode == 1, done.stderr
    assert "-  size: 1" in done.stdout
    assert "+  size: 2" in done.stdout


def test_server_side_apply_merges_what_several_apply(kubectl, namespace):
    first = widget("w", namespace, size=1, hosts=[{"ip": "10.0.0.1"}])
    second = widget("w", namespace, hosts=[{"ip": "10.0.0.2", "name": "b"}])
    apply = ("apply", "--server-side", "-f", "-", "--field-manager")
    assert kubectl(*apply, "one", stdin=first) == "widget.example.io/w serverside-applied\n"
    kubectl(*apply, "two", stdin=second)
    hosts = kubectl.json("get", "wd", "w")["spec"]["hosts"]
    assert sorted(host["ip"] for host in hosts) == ["10.0.0.1", "10.0.0.2"]
    kubectl(*apply, "one", stdin=widget("w", namespace, size=1))
    assert kubectl.json("get", "wd", "w")["spec"]["hosts"] == [{"ip": "10.0.0.2", "name": "b"}]


def test_server_side_apply_twice_writes_once(kubectl, namespace):
    apply = ("apply", "--server-side", "-f", "-")
    kubectl(*apply, stdin=widget("w", namespace, size=1))
    before = kubectl.json("get", "wd", "w", "--show-managed-fields")
    kubectl(*apply, stdin=widget("w", namespace, size=1))
    assert kubectl.json("get", "wd", "w", "--show-managed-fields") == before


def test_empty_maps_do_not_count_as_changes(kubectl, namespace):
    document = widget("w", namespace, size=1)
    document["metadata"] |= {"labels": {}, "annotations": {}}
    for apply in (("apply", "-f", "-"), ("apply", "--server-side", "-f", "-")):
        kubectl(*apply, stdin=document)
        before = kubectl.json("get", "wd", "w", "--show-managed-fields")
        kubectl(*apply, stdin=document)
        assert kubectl.json("get", "wd", "w", "--show-managed-fields") == before
        kubectl("delete", "wd", "w")


def test_server_side_apply_stops_at_anothers_field_unless_forced(kubectl, namespace):
    apply = ("apply", "--server-side", "-f", "-", "--field-manager")
    kubectl(*apply, "one", stdin=widget("w", namespace, size=1))
    error = kubectl.fails(*apply, "two", stdin=widget("w", namespace, size=2))
    assert "Apply failed with 1 conflict" in error
    assert 'conflict with "one": .spec.size' in error
    kubectl(*apply, "two", "--force-conflicts", stdin=widget("w", namespace, size=2))
    shown = kubectl.json("get", "wd", "w", "--show-managed-fields")
    assert shown["spec"]["size"] == 2
    owners = {e["manager"]: e["fieldsV1"] for e in shown["metadata"]["managedFields"]}
    assert "f:size" in owners["two"]["f:spec"]
    assert "f:spec" not in owners.get("one", {})


def test_moving_from_client_side_to_server_side_apply(kubectl, namespace):
    kubectl("apply", "-f", "-", stdin=widget("w", namespace, size=1, image="i"))
    kubectl("apply", "--server-side", "-f", "-", stdin=widget("w", namespace, size=2))
    assert kubectl.json("get", "wd", "w")["spec"] == {"size": 2, "color": "grey"}


def test_creating_what_exists_is_refused(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    error = kubectl.fails("create", "-f", "-", stdin=widget("w", namespace))
    assert "AlreadyExists" in error
    assert 'widgets.example.io "w" already exists' in error


def test_replacing_and_a_stale_replacement(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace, size=1, image="i"))
    stale = kubectl.json("get", "wd", "w")
    assert kubectl("replace", "-f", "-", stdin=widget("w", namespace, size=2)) == (
        "widget.example.io/w replaced\n"
    )
    assert "image" not in kubectl.json("get", "wd", "w")["spec"]
    assert "Conflict" in kubectl.fails("replace", "-f", "-", stdin=stale)


def test_editing_with_an_editor(kubectl, namespace, tmp_path):
    kubectl("create", "-f", "-", stdin=widget("w", namespace, size=1))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/size: 1/size: 5/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    text = kubectl("edit", "wd", "w", more_environment={"KUBE_EDITOR": str(editor)})
    assert text == "widget.example.io/w edited\n"
    assert kubectl.json("get", "wd", "w")["spec"]["size"] == 5


def test_patching_with_a_merge_patch_and_a_json_patch(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace, size=1, image="i"))
    patch = ("patch", "wd", "w", "--type")
    merge = json.dumps({"spec": {"size": 2, "image": None}})
    assert kubectl(*patch, "merge", "-p", merge) == "widget.example.io/w patched\n"
    assert kubectl.json("get", "wd", "w")["spec"] == {"size": 2, "color": "grey"}
    assert kubectl(*patch, "merge", "-p", merge) == "widget.example.io/w patched (no change)\n"
    operations = [
        {"op": "test", "path": "/spec/size", "value": 2},
        {"op": "replace", "path": "/spec/size", "value": 3},
    ]
    kubectl(*patch, "json", "-p", json.dumps(operations))
    assert kubectl.json("get", "wd", "w")["spec"]["size"] == 3
    error = kubectl.fails(*patch, "json", "-p", json.dumps(operations))
    assert "operation 1 (test /spec/size)" in error


def test_patching_the_status(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    patch = json.dumps({"status": {"phase": "Ready"}, "spec": {"size": 9}})
    kubectl("patch", "wd", "w", "--subresource=status", "--type=merge", "-p", patch)
    shown = kubectl.json("get", "wd", "w", "--subresource=status")
    assert shown["status"] == {"phase": "Ready"}
    assert "size" not in shown["spec"]


def test_a_strategic_patch_of_a_custom_resource_is_refused(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    error = kubectl.fails("patch", "wd", "w", "-p", '{"spec": {"size": 2}}')
    assert "application/strategic-merge-patch+json is not supported" in error
    assert "use one of: application/json-patch+json, application/merge-patch+json" in error


def test_a_strategic_patch_of_a_built_in_kind(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=job("j", namespace))
    kubectl("patch", "job", "j", "-p", '{"spec": {"suspend": true}}')
    assert kubectl.json("get", "job", "j")["spec"]["suspend"] is True
    error = kubectl.fails("patch", "job", "j", "-p", '{"spec": {"completions": 4}}')
    assert "spec.completions" in error


def test_annotating_and_labelling(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace, labels={"a": "1"}))
    assert kubectl("label", "wd", "w", "b=2", "a-") == "widget.example.io/w labeled\n"
    assert kubectl.json("get", "wd", "w")["metadata"]["labels"] == {"b": "2"}
    assert "--overwrite is false" in kubectl.fails("label", "wd", "w", "b=3")
    kubectl("label", "wd", "w", "b=3", "--overwrite")
    assert kubectl("annotate", "wd", "w", "note=x") == "widget.example.io/w annotated\n"
    kubectl("annotate", "wd", "w", "note-")
    assert "annotations" not in kubectl.json("get", "wd", "w")["metadata"]


def dependent(name, namespace, owner):
    document = widget(name, namespace)
    document["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "example.io/v1",
            "kind": "Widget",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
    ]
    return document


def test_deleting_waits_and_says_so(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    assert kubectl("delete", "wd", "w") == 'widget.example.io "w" deleted\n'
    assert "NotFound" in kubectl.fails("delete", "wd", "w")
    assert kubectl("delete", "wd", "w", "--ignore-not-found") == ""


def test_deleting_waits_for_finalizers_unless_told_not_to(kubectl, namespace):
    document = widget("w", namespace)
    document["metadata"]["finalizers"] = ["example.io/hold"]
    kubectl("create", "-f", "-", stdin=document)
    kubectl("delete", "wd", "w", "--wait=false")
    assert kubectl.json("get", "wd", "w")["metadata"]["deletionTimestamp"]
    waiting = kubectl.start("delete", "wd", "w")
    assert 'widget.example.io "w" deleted' in waiting.stdout.readline()
    kubectl.api.merge(
        f"/apis/example.io/v1/namespaces/{namespace}/widgets/w",
        {"metadata": {"finalizers": None}},
    )
    assert waiting.wait(30) == 0


def test_cascading_orphan_leaves_dependents_without_owner(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("owner", namespace))
    owner = kubectl.json("get", "wd", "owner")
    kubectl("create", "-f", "-", stdin=dependent("child", namespace, owner))
    kubectl("delete", "wd", "owner", "--cascade=orphan", "--wait=false")
    marked = kubectl.run("get", "wd", "owner", "-o", "json")
    if marked.returncode == 0:  # it waits for the garbage collector, which does not run here
        assert "orphan" in json.loads(marked.stdout)["metadata"]["finalizers"]
    assert kubectl.run("get", "wd", "child").returncode == 0


def test_cascading_foreground_marks_the_owner(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("owner", namespace))
    owner = kubectl.json("get", "wd", "owner")
    kubectl("create", "-f", "-", stdin=dependent("child", namespace, owner))
    kubectl("delete", "wd", "owner", "--cascade=foreground", "--wait=false")
    left = kubectl.json("get", "wd", "owner")
    assert "foregroundDeletion" in left["metadata"]["finalizers"]


def test_deleting_by_force_and_without_grace(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    assert "force deleted" in kubectl("delete", "wd", "w", "--force", "--grace-period=0")


def test_deleting_many(kubectl, namespace):
    for name, tier in (("a", "x"), ("b", "y"), ("c", "x")):
        kubectl("create", "-f", "-", stdin=widget(name, namespace, labels={"tier": tier}))
    kubectl("delete", "wd", "-l", "tier=x")
    assert kubectl("get", "wd", "-o", "name").split() == ["widget.example.io/b"]
    kubectl("delete", "wd", "--all")
    assert kubectl("get", "wd", "-o", "name") == ""


def test_waiting_for_a_condition(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    waiting = kubectl.start("wait", "--for=condition=Ready", "wd/w", "--timeout=30s")
    status = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Done"}
    path = f"/apis/example.io/v1/namespaces/{namespace}/widgets/w/status"
    kubectl.api.merge(path, {"status": status})
    assert waiting.communicate(timeout=30)[0] == "widget.example.io/w condition met\n"
    assert waiting.returncode == 0
    kubectl("wait", "--for=jsonpath={.status.phase}=Done", "wd/w", "--timeout=10s")
    error = kubectl.fails("wait", "--for=condition=Absent", "wd/w", "--timeout=1s")
    assert "timed out waiting for the condition" in error


def test_waiting_for_a_deletion(kubectl, namespace):
    kubectl("create", "-f", "-", stdin=widget("w", namespace))
    waiting = kubectl.start("wait", "--for=delete", "wd/w", "--timeout=30s")
    kubectl.api.ok("DELETE", f"/apis/example.io/v1/namespaces/{namespace}/widgets/w")
    assert waiting.wait(30) == 0


def test_a_new_definition_is_served_at_once(kubectl, namespace):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.fresh.example.io"},
        "spec": {
            "group": "fresh.example.io",
            "scope": "Namespaced",
            "names": {"kind": "Gear", "plural": "gears", "singular": "gear"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }
    kubectl("apply", "-f", "-", stdin=definition)
    kubectl("wait", "--for=condition=Established", "crd/gears.fresh.example.io", "--timeout=10s")
    gear = {
        "apiVersion": "fresh.example.io/v1",
        "kind": "Gear",
        "metadata": {"name": "g"},
        "spec": {"teeth": 9},
    }
    kubectl("apply", "-f", "-", stdin=gear)
    header, _ = kubectl("get", "gears").splitlines()
    assert header.split() == ["NAME", "AGE"]
    kubectl("delete", "crd", "gears.fresh.example.io")
    assert kubectl.run("get", "gears").returncode != 0


def config_maps(*names, **more):
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}}
        | more
        for name in names
    ]


def test_what_was_read_as_a_list_can_be_applied_again(kubectl):
    for document in config_maps("a", "b"):
        kubectl("create", "-f", "-", stdin=document)
    kubectl("apply", "-f", "-", stdin=widget("w", kubectl.namespace, size=1))
    for form in ("yaml", "json"):
        told = kubectl("apply", "-f", "-", stdin=kubectl("get", "cm,widgets", "-o", form))
        assert [line.split()[0] for line in told.splitlines()] == [
            "configmap/a",
            "configmap/b",
            "widget.example.io/w",
        ]
    for command in (["apply", "--server-side", "--force-conflicts"], ["replace"]):
        kubectl(*command, "-f", "-", stdin=kubectl("get", "cm,widgets", "-o", "yaml"))


@pytest.mark.parametrize("kind", ["List", "ConfigMapList"])
def test_lists_of_any_name_are_created_and_deleted(kubectl, kind):
    listed = {"apiVersion": "v1", "kind": kind, "items": config_maps("a", "b")}
    assert kubectl("create", "-f", "-", stdin=listed).count("created") == 2
    assert kubectl("delete", "-f", "-", stdin=listed).count("deleted") == 2


@pytest.mark.parametrize("mode", ["strict", "warn", "ignore"])
def test_fields_in_the_items_of_a_list_are_validated(kubectl, mode):
    listed = {"apiVersion": "v1", "kind": "List", "items": config_maps("a", dato={"k": "v"})}
    done = kubectl.run("apply", f"--validate={mode}", "-f", "-", stdin=listed)
    assert (done.returncode == 0) is (mode != "strict"), done.stderr
    assert ("dato" in done.stderr) is (mode != "ignore")


def test_a_kind_that_nobody_knows_is_told_as_such(kubectl):
    thing = {"apiVersion": "absent.io/v1", "kind": "Thing", "metadata": {"name": "t"}}
    told = kubectl.fails("apply", "-f", "-", stdin=thing)
    assert 'no matches for kind "Thing" in version "absent.io/v1"' in told
    listed = {"apiVersion": "v1", "kind": "List", "items": [thing]}
    assert "no matches for kind" in kubectl.fails("apply", "-f", "-", stdin=listed)
