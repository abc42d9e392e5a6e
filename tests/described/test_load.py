"""Described objects: what is loaded, and one clear message for everything that cannot be."""

import io
import json
from textwrap import dedent

import pytest

from captfctl.cluster.errors import Invalid
from captfctl.embedded.capi import capi_crds
from captfctl.embedded.described import BadInput, load, scratch_store
from captfctl.embedded.described.reading import MAX_BYTES
from captfctl.install.policies import policies
from captfctl.model.crds import crds
from captfctl.model.resources import (
    CONFIG_MAPS,
    JOBS,
    NAMESPACES,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
)
from tests.support.clock import FakeClock

CLUSTER = """\
    apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
    kind: TerraformCluster
    metadata:
      name: prod
      namespace: team-a
    spec:
      identityRef: {name: aws}
      source:
        image: registry.example.com/prod:v1
"""


@pytest.fixture
def store():
    store = scratch_store(FakeClock(), [*crds(), *capi_crds(), *policies()])
    yield store
    store.close()


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write files into the working directory, dedented."""
    monkeypatch.chdir(tmp_path)

    def write(**contents):
        for name, content in contents.items():
            (tmp_path / f"{name}.yaml").write_text(dedent(content))

    write.path = tmp_path
    return write


def loaded(store, text, **options):
    return load(["-"], store, stdin=io.BytesIO(dedent(text).encode()), **options)


def refusals(store, text, **options):
    """`line: field: message` of everything wrong with a text."""
    with pytest.raises(BadInput) as refused:
        loaded(store, text, **options)
    return [str(v).removeprefix("standard input:") for v in refused.value.violations]


# What is loaded.


def test_objects_come_in_the_order_of_the_files_with_their_places(store, files):
    files(b=CLUSTER, a="apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n")
    described = load(["b.yaml", "a.yaml"], store)
    assert [one.identity[1:] for one in described] == [
        ("TerraformCluster", "team-a", "prod"),
        ("Secret", "default", "s"),
    ]
    assert str(described.source_of("TerraformCluster", "team-a", "prod")) == "b.yaml:1"
    place = described.source_of("TerraformCluster", "team-a", "prod", "spec.source.image")
    assert str(place) == "b.yaml:9"
    assert described.source_of("TerraformCluster", "team-b", "prod") is None


def test_a_field_that_is_not_written_is_placed_where_it_would_be(store):
    (one,) = loaded(store, CLUSTER)
    assert one.place("spec.source.digest").line == 8
    assert one.place("spec.jobs.lockTimeoutSeconds").line == 6
    assert one.place("").line == 1


def test_keys_with_dots_slashes_and_indexes_are_found(store):
    (one,) = loaded(
        store,
        """\
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          annotations:
            captf.io/restore-state: "7"
            captf.io/restore: "8"
          ownerReferences:
          - apiVersion: v1
            kind: X
            name: m
            uid: u
        data:
          a.b: x
          a: z
        """,
    )
    lines = {
        "metadata.annotations.captf.io/restore-state": 6,
        "metadata.annotations[captf.io/restore]": 7,
        "metadata.ownerReferences[0].uid": 12,
        "data.a.b": 14,
        "data[a]": 15,
        "data.a": 15,
        "metadata.ownerReferences[3]": 8,
    }
    assert {path: one.place(path).line for path in lines} == lines


def test_a_directory_stands_for_its_yaml_and_json_files_without_its_directories(store, files):
    files(b=CLUSTER)
    (files.path / "a.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    )
    (files.path / "c.yml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: t}\n")
    (files.path / "notes.txt").write_text("[")
    inner = files.path / "inner"
    inner.mkdir()
    (inner / "d.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: u}\n")
    assert [one.name for one in load(["."], store)] == ["s", "prod", "t"]


def test_directories_below_are_read_when_asked_for(store, files):
    inner = files.path / "one" / "two"
    inner.mkdir(parents=True)
    (inner / "d.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: u}\n")
    assert [one.name for one in load(["."], store, recursive=True)] == ["u"]


def test_a_file_named_twice_is_read_once(store, files):
    files(a=CLUSTER)
    assert len(load(["a.yaml", ".", "./a.yaml"], store)) == 1


def test_lists_are_their_items_and_empty_documents_are_nothing(store):
    described = loaded(
        store,
        """\
        ---
        # nothing here
        ---
        apiVersion: v1
        kind: List
        items:
        - apiVersion: v1
          kind: Secret
          metadata: {name: a}
        - apiVersion: v1
          kind: List
          items:
          - {apiVersion: v1, kind: Secret, metadata: {name: b}}
        ---
        """,
    )
    assert [(one.name, one.source.line) for one in described] == [("a", 7), ("b", 13)]


def test_what_only_a_server_sets_is_kept_as_given(store):
    loaded(
        store,
        CLUSTER.replace(
            "      namespace: team-a\n",
            """\
      namespace: team-a
      uid: 1b4e28ba-2fa1-11d2-883f-0016d3cca427
      generation: 4
      resourceVersion: "812"
      creationTimestamp: 2026-01-02T03:04:05Z
      deletionTimestamp: 2026-02-02T03:04:05Z
      finalizers: [terraformcluster.infrastructure.cluster.x-k8s.io]
""",
        )
        + "    status:\n      initialization: {provisioned: true}\n",
    )
    one = store.door().get(TERRAFORM_CLUSTERS, "prod", "team-a")
    assert one.metadata.uid == "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    assert one.metadata.generation == 4
    assert one.metadata.creation_timestamp.isoformat() == "2026-01-02T03:04:05+00:00"
    assert one.deleting
    assert one.status.initialization.provisioned
    assert one.metadata.resource_version not in ("", "812")


def test_what_is_not_given_is_absent_and_the_object_usable(store):
    loaded(store, CLUSTER)
    door = store.door()
    one = door.get(TERRAFORM_CLUSTERS, "prod", "team-a")
    assert one.metadata.uid == ""
    assert one.metadata.creation_timestamp is None
    patch = {"metadata": {"labels": {"x": "y"}}}
    changed = door.patch(
        TERRAFORM_CLUSTERS, "prod", "team-a", patch, resource_version=one.metadata.resource_version
    )
    assert changed.metadata.labels == {"x": "y"}
    status = {"status": {"initialization": {"provisioned": True}}}
    door.patch(TERRAFORM_CLUSTERS, "prod", "team-a", status, subresource="status")
    door.delete(TERRAFORM_CLUSTERS, "prod", "team-a")


def test_an_object_without_uid_can_be_named_as_owner_and_no_other_can(store):
    loaded(store, CLUSTER)
    door = store.door()

    def own(name):
        owner = {"apiVersion": TERRAFORM_CLUSTERS.api_version, "kind": "TerraformCluster"}
        metadata = {"name": f"of-{name}", "ownerReferences": [owner | {"name": name}]}
        return door.create(CONFIG_MAPS.untyped(), {"metadata": metadata}, "team-a")

    assert own("prod")["metadata"]["ownerReferences"][0]["name"] == "prod"
    with pytest.raises(Invalid, match="uid"):
        own("another")


def test_a_finished_job_as_a_server_shows_it_can_be_described(store):
    loaded(
        store,
        """\
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: j
          namespace: team-a
          uid: 1b4e28ba-2fa1-11d2-883f-0016d3cca427
          resourceVersion: "5"
          managedFields: []
        spec:
          backoffLimit: 0
          selector:
            matchLabels:
              batch.kubernetes.io/controller-uid: 1b4e28ba-2fa1-11d2-883f-0016d3cca427
          template:
            metadata:
              labels:
                batch.kubernetes.io/controller-uid: 1b4e28ba-2fa1-11d2-883f-0016d3cca427
            spec:
              restartPolicy: Never
              containers:
              - {name: run, image: x, resources: {requests: {cpu: 0.5, memory: 1Gi}}}
        status:
          succeeded: 1
          conditions:
          - {type: Complete, status: "True"}
        """,
    )
    job = store.door().get(JOBS, "j", "team-a")
    assert job.status.succeeded == 1
    uid = job.spec.selector.match_labels["batch.kubernetes.io/controller-uid"]
    assert uid == job.metadata.uid


def test_namespaces_come_into_being_and_described_ones_keep_their_labels(store):
    loaded(
        store,
        CLUSTER
        + """\
    ---
    apiVersion: v1
    kind: Namespace
    metadata: {name: team-b, labels: {tier: gold}}
    ---
    apiVersion: v1
    kind: Namespace
    metadata: {name: default, labels: {tier: base}}
""",
    )
    door = store.door()
    assert door.get(NAMESPACES, "team-a").metadata.name == "team-a"
    assert door.get(NAMESPACES, "team-b").metadata.labels["tier"] == "gold"
    assert door.get(NAMESPACES, "default").metadata.labels["tier"] == "base"


def test_the_namespace_of_objects_that_name_none_can_be_chosen(store):
    loaded(store, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", namespace="team-z")
    assert store.door().get(CONFIG_MAPS, "a", "team-z").metadata.name == "a"


def test_cluster_wide_objects_have_no_namespace(store):
    loaded(
        store,
        """\
        apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
        kind: TerraformClusterIdentity
        metadata: {name: aws}
        spec:
          secretRef: {name: s, namespace: team-a}
          allowedNamespaces: {list: [team-a]}
        """,
    )
    one = store.door().get(TERRAFORM_CLUSTER_IDENTITIES, "aws")
    assert one.metadata.namespace == ""


def test_kinds_may_be_defined_among_the_objects_even_after_their_first_use(store):
    described = loaded(
        store,
        """\
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: w}
        spec: {size: 3}
        ---
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: widgets.example.com}
        spec:
          group: example.com
          scope: Namespaced
          names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
          versions:
          - name: v1
            served: true
            storage: true
            schema:
              openAPIV3Schema:
                type: object
                properties:
                  spec: {type: object, properties: {size: {type: integer}}}
        """,
    )
    assert [one.resource.kind for one in described] == ["Widget", "CustomResourceDefinition"]


def test_plain_text_of_secrets_is_taken(store):
    loaded(store, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n")
    assert store.door().get(SECRETS, "s", "default").data == {"a": b"b"}


def test_the_document_handed_out_is_as_written(store):
    (one,) = loaded(store, CLUSTER)
    assert one.document["spec"] == {
        "identityRef": {"name": "aws"},
        "source": {"image": "registry.example.com/prod:v1"},
    }
    assert "status" not in one.document


# What is refused.


def test_a_missing_file_and_a_directory_without_files_are_named(store, files):
    (files.path / "empty").mkdir()
    with pytest.raises(BadInput) as refused:
        load(["nothing.yaml", "empty"], store)
    first, second = map(str, refused.value.violations)
    assert first.startswith("empty: ") and "*.yaml" in first
    assert second == "nothing.yaml: the file does not exist"


def test_an_unreadable_file_is_named(store, files):
    (files.path / "loop.yaml").symlink_to("loop.yaml")
    with pytest.raises(BadInput, match=r"loop\.yaml"):
        load(["loop.yaml"], store)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n---\n"])
def test_an_input_without_objects_is_refused(store, text):
    (message,) = refusals(store, text)
    assert "no object" in message


def test_bytes_that_are_no_text_are_refused_with_their_line(store, files):
    (files.path / "a.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(BadInput, match=r"^a\.yaml:2: it is not UTF-8 text$"):
        load(["a.yaml"], store)


def test_a_file_that_is_too_large_is_refused_unread(store, files):
    with (files.path / "big.yaml").open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    with pytest.raises(BadInput, match="larger than 8 MiB"):
        load(["big.yaml"], store)


def test_an_object_that_no_server_would_store_is_refused(store):
    text = (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {'x' * 2_000_000}}}\n"
    )
    (message,) = refusals(store, text)
    assert message.startswith("1:") and "1048576 bytes" in message


def test_standard_input_can_be_read_only_once(store):
    with pytest.raises(BadInput, match="standard input"):
        load(["-"], store, stdin=None)


CASES = {
    "text that does not parse": ("a: [", ["not YAML"]),
    "not an object": ("- a\n", ["1: an object is expected here, not a list"]),
    "plain text": ("hello\n", ["1: an object is expected here, not text"]),
    "no apiVersion": ("kind: Secret\nmetadata: {name: a}\n", ["1: apiVersion: is missing"]),
    "no kind": ("apiVersion: v1\nmetadata: {name: a}\n", ["1: kind: is missing"]),
    "no metadata": ("apiVersion: v1\nkind: Secret\n", ["1: metadata.name: is missing"]),
    "no name": (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  labels: {a: b}\n",
        ["3: metadata.name: is missing"],
    ),
    "a generated name": (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  generateName: a-\n",
        ["generateName is not enough"],
    ),
    "a name that is a number": (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: 5\n",
        ["4: metadata.name: must be text, not a number: put it in quotes"],
    ),
    "metadata of another type": (
        "apiVersion: v1\nkind: Secret\nmetadata: x\n",
        ["3: metadata: must be an object, not text"],
    ),
    "an unknown kind": (
        "apiVersion: v1\nkind: Secrets\nmetadata: {name: a}\n",
        ['2: kind: there is no kind "Secrets" in v1: did you mean Secret?'],
    ),
    "a kind that resembles nothing": (
        "apiVersion: v1\nkind: Qqqqqq\nmetadata: {name: a}\n",
        ['2: kind: there is no kind "Qqqqqq" in v1'],
    ),
    "an unknown version": (
        "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: TerraformCluster\n"
        "metadata: {name: a}\n",
        ["1: apiVersion:", "use infrastructure.cluster.x-k8s.io/v1alpha1"],
    ),
    "a name that no object may have": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_A_Name\n",
        ["4: metadata.name:", "lowercase"],
    ),
    "a namespace for a cluster-wide object": (
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  namespace: b\n",
        ["3: metadata.namespace:", "belongs to no namespace"],
    ),
    "a namespace that none can be": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: A_B\n",
        ["1:", "A_B"],
    ),
    "an unknown field of a built-in kind": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndatas: {a: b}\n",
        ["4: datas: there is no such field: did you mean data?"],
    ),
    "a wrong type in a built-in kind": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: b\n  c: true\n",
        ["6: data.c: must be of type string, not boolean: put it in quotes"],
    ),
    "a label that is a number": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    x: 5\n",
        ["6: metadata.labels.x: must be of type string, not integer: put it in quotes"],
    ),
    "a label's value that none can have": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    x: a b\n",
        ["metadata.labels"],
    ),
    "data that is not base64": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  k: s3cret!\n",
        ["5: data.k: must be base64"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_with_line_and_field(store, case):
    text, words = CASES[case]
    (message,) = refusals(store, text)
    for word in words:
        assert word in message
    assert "s3cret" not in message


CUSTOM = {
    "a wrong type": (
        "    image: 5\n",
        ["9: spec.source.image: must be of type string, not integer: put it in quotes"],
    ),
    "an unknown field": (
        "    image: x\n    imgae: y\n",
        ["10: spec.source.imgae: there is no such field: did you mean image?"],
    ),
    "a required field that is missing": ("    {}\n", ["8: spec.source.image: is required"]),
    "a null": ("    image:\n", ["9: spec.source.image:"]),
}


@pytest.mark.parametrize("case", CUSTOM)
def test_bad_fields_of_our_kinds_are_refused_with_line_and_field(store, case):
    source, words = CUSTOM[case]
    text = dedent(CLUSTER).replace("    image: registry.example.com/prod:v1\n", source)
    (message,) = refusals(store, text)
    for word in words:
        assert word in message


def test_a_value_out_of_an_enumeration_lists_the_values(store):
    (message,) = refusals(store, CLUSTER + "      deletionPolicy: Keep\n")
    assert message.startswith("10: spec.deletionPolicy:")
    assert "Retain" in message and "Destroy" in message


def warnings(store, text):
    return [f"{w.source.line}: {w.field}: {w.message}" for w in loaded(store, text).warnings]


def test_a_variable_that_kubectl_takes_for_something_else_is_told_with_its_line(store):
    told = warnings(
        store,
        CLUSTER
        + "      variables:\n        zone: no\n        list: [a, {port: 0777}]\n        on: x\n",
    )
    assert [one.partition(", ")[0] for one in told] == [
        "11: spec.variables.zone: no is read as false",
        "12: spec.variables.list[1].port: this is read as a number in base 8",
        "13: spec.variables.true: on is read as true",
    ]


def test_a_field_whose_type_is_known_is_not_told(store):
    assert warnings(store, CLUSTER + "      adoptRetainedState: yes\n") == []


def test_what_is_warned_of_is_never_quoted_when_it_may_be_secret(store):
    told = warnings(store, CLUSTER + "      variables: {pin: 0b1101, code: 0777_1}\n")
    assert len(told) == 2
    assert "1101" not in str(told) and "0777" not in str(told)


def test_a_dangling_link_in_a_directory_is_told_with_its_path(store, files):
    files(one=CLUSTER)
    (files.path / "two.yaml").symlink_to("gone/away.yaml")
    with pytest.raises(BadInput) as refused:
        load(["."], store)
    (message,) = map(str, refused.value.violations)
    assert message.startswith("two.yaml: ") and "gone/away.yaml" in message


def test_a_link_to_itself_in_a_directory_is_told_with_its_path(store, files):
    (files.path / "two.yaml").symlink_to("two.yaml")
    with pytest.raises(BadInput, match=r"two\.yaml"):
        load(["."], store)


def test_a_boolean_in_quotes_says_how_to_write_it(store):
    (message,) = refusals(store, CLUSTER + "      adoptRetainedState: 'yes'\n")
    assert message.startswith("10: spec.adoptRetainedState:")
    assert "true or false" in message


def test_two_objects_with_one_name_are_refused_with_both_places(store, files):
    files(one=CLUSTER, two=CLUSTER)
    with pytest.raises(BadInput) as refused:
        load(["one.yaml", "two.yaml"], store)
    (message,) = map(str, refused.value.violations)
    assert message.startswith("two.yaml:3: metadata.name:")
    assert "one.yaml:1" in message


def test_one_name_in_two_namespaces_or_kinds_is_two_objects(store):
    other = CLUSTER.replace("team-a", "team-b")
    secret = "    apiVersion: v1\n    kind: Secret\n    metadata: {name: prod, namespace: team-a}\n"
    assert len(loaded(store, f"{CLUSTER}    ---\n{other}    ---\n{secret}")) == 3


def test_everything_wrong_in_all_files_is_told_at_once_in_their_order(store, files):
    files(
        a=CLUSTER.replace("image:", "imgae:"),
        b="apiVersion: v1\nkind: Secrt\nmetadata: {name: a}\n",
        c="a: [}",
        d="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A}\ndata: {x: 1}\nrubbish: 1\n",
    )
    with pytest.raises(BadInput) as refused:
        load([".", "missing.yaml"], store)
    error = refused.value
    places = [f"{v.source} {v.field}".strip() for v in error.violations]
    assert places == [
        "a.yaml:8 spec.source.image",
        "a.yaml:9 spec.source.imgae",
        "b.yaml:2 kind",
        "c.yaml:1",
        "d.yaml:3 metadata.name",
        "d.yaml:4 data.x",
        "d.yaml:5 rubbish",
        "missing.yaml",
    ]
    assert error.exit_code == 2
    assert str(error).count("\n") == len(places) - 1


def test_the_same_violation_is_not_told_twice(store):
    messages = refusals(store, CLUSTER + "      jobs: {lockTimeoutSeconds: x}\n")
    assert len(messages) == 1


def test_rules_written_in_cel_are_checked(store):
    text = """\
        apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
        kind: TerraformClusterIdentity
        metadata: {name: aws}
        spec:
          secretRef: {name: s, namespace: team-a}
          allowedNamespaces: {}
        """
    (message,) = refusals(store, text)
    assert message.startswith("6: spec.allowedNamespaces")


# What admission refuses.


def test_rules_of_admission_are_told_with_the_line_of_the_field(store):
    text = """\
        apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
        kind: TerraformCluster
        metadata:
          name: prod
        spec:
          identityRef: {name: aws}
          source:
            image: Foo Bar
          variables:
            region: eu
            count: 3
          jobs:
            activeDeadlineSeconds: 60
            env:
            - name: A
              value: b
            - value: hunter2
              name: TF_LOG
            podSecurityContext:
              sysctls:
              - name: kernel.msgmax
        """
    found = refusals(store, text)
    assert [": ".join(violation.split(": ")[:2]) for violation in found] == [
        "8: spec.source.image",
        "11: spec.variables[count]",
        "13: spec.jobs.activeDeadlineSeconds",
        '18: spec.jobs.env[name="TF_LOG"].name',
        '21: spec.jobs.podSecurityContext.sysctls[name="kernel.msgmax"].name',
    ]
    assert "denied" not in "".join(found)
    assert "hunter2" not in "".join(found)


def test_an_identity_in_a_file_needs_nobody_who_may_read_its_secret(store):
    text = """\
        apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
        kind: TerraformClusterIdentity
        metadata:
          name: aws
        spec:
          secretRef: {name: keys, namespace: team-a}
          allowedNamespaces: {list: [team-a]}
        """
    assert len(loaded(store, text)) == 1


def test_policies_in_the_files_hold_for_what_comes_after_them(store):
    text = """\
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicy
        metadata:
          name: no-secrets.example.com
        spec:
          matchConstraints:
            resourceRules:
            - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}
          validations:
          - {expression: "false", message: keep it elsewhere}
        ---
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicyBinding
        metadata:
          name: no-secrets.example.com
        spec:
          policyName: no-secrets.example.com
          validationActions: [Deny]
        ---
        apiVersion: v1
        kind: Secret
        metadata:
          name: s
        """
    (found,) = refusals(store, text)
    assert found.startswith("20: ")
    assert found.endswith("'no-secrets.example.com' denied request: keep it elsewhere")
