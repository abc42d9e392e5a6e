"""No request body, of whatever encoding, ends in anything but an answer or a clean 4xx."""

import json
import os
import random
from urllib.parse import quote

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from captfctl.embedded.apiserver import protobuf
from tests.apiserver.conftest import WIDGETS
from tests.apiserver.examples import EXAMPLES
from tests.apiserver.in_process import InProcess
from tests.apiserver.odd_documents import (
    Draw,
    odd_delete_options,
    odd_document,
    odd_operations,
    odd_request_of_a_subresource,
    with_directives,
)
from tests.apiserver.wire import encoded, envelope

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

OBJECTS = ("application/json", "application/yaml", protobuf.MEDIA, "")
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
PATCHES = (MERGE, STRATEGIC, JSON_PATCH, APPLY)
OTHERS = (
    *("application/cbor", "application/cbor-seq", "application/apply-patch+cbor", "text/plain"),
    *("application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", "x"),
)
SUBRESOURCES = (
    f"{PODS}/a/binding",
    f"{PODS}/a/eviction",
    "/api/v1/namespaces/default/serviceaccounts/a/token",
)
REVIEWS = (
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
)
WRITES = tuple(
    request
    for kind in EXAMPLES
    for request in (
        ("POST", kind.collection("default")),
        ("PUT", f"{kind.collection('default')}/a"),
        ("PATCH", f"{kind.collection('default')}/a?fieldManager=m"),
        ("PATCH", f"{kind.collection('default')}/a/status?fieldManager=m"),
        ("DELETE", f"{kind.collection('default')}/absent"),
    )
) + tuple(("POST", path) for path in SUBRESOURCES + REVIEWS)


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    server = InProcess(tmp_path_factory.mktemp("api"))
    assert server("POST", CRDS, WIDGETS).status == 201
    yield server
    server.close()


def clean(answer):
    """An answer that is no failure of the server's; what is refused is told in a Status."""
    if answer.status >= 400:
        told = answer.json
        assert 400 <= answer.status < 500, told
        assert (told["kind"], told["status"]) == ("Status", "Failure")
        assert told["code"] == answer.status
        assert told["reason"] and told["message"]
    return answer


def refused(answer, *statuses):
    assert clean(answer).status in statuses, answer
    return answer.json["message"]


@given(
    request=st.sampled_from(WRITES),
    content_type=st.sampled_from(OBJECTS + PATCHES + OTHERS),
    body=st.binary(max_size=80),
    magic=st.booleans(),
)
@example(("POST", MAPS), protobuf.MEDIA, b"\x08\x00", True)
@example(("POST", MAPS), "application/yaml", b"\xff", False)
@example(("POST", MAPS), "application/json", b"9" * 400, False)
def test_any_bytes(api, request, content_type, body, magic):
    method, path = request
    clean(api(method, path, protobuf.MAGIC + body if magic else body, content_type))


@given(
    request=st.sampled_from(WRITES),
    content_type=st.sampled_from((*OBJECTS[:2], *PATCHES)),
    text=st.text(alphabet='{}[]:,"&*!-#|> \n\tab1.e~<\\u', max_size=60),
)
def test_almost_json_and_yaml(api, request, content_type, text):
    clean(api(*request, text.encode(), content_type))


def kinds_as_protobuf():
    return [kind for kind in EXAMPLES if protobuf.has_message(kind.api_version, kind.kind)]


@given(kind=st.sampled_from(kinds_as_protobuf()), data=st.data())
def test_any_message_in_the_envelope_of_a_kind(api, kind, data):
    message = data.draw(st.binary(max_size=60))
    body = envelope(kind.api_version, kind.kind, message)
    clean(api("POST", kind.collection("default"), body, protobuf.MEDIA))


def _as_yaml(document):
    return yaml.safe_dump(document).encode()


def _as_json(document):
    return json.dumps(document).encode()


ENCODINGS = {
    "application/json": (_as_json, EXAMPLES),
    "application/yaml": (_as_yaml, EXAMPLES),
    protobuf.MEDIA: (encoded, kinds_as_protobuf()),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_bodies_as_they_are_and_cut_off_and_changed_on_the_way(api, encoding):
    encode, kinds = ENCODINGS[encoding]
    repeatable = os.environ.get("HYPOTHESIS_PROFILE") == "repeatable"
    draw = random.Random(1 if repeatable else None)
    for kind in kinds:
        whole = encode(kind.named("cut", "default"))
        path = f"{kind.collection('default')}?dryRun=All"
        assert api("POST", path, whole, encoding).status == 201
        for _ in range(20):
            place = draw.randrange(len(whole))
            answer = clean(api("POST", path, whole[:place], encoding))
            assert answer.status >= 400 or encoding != "application/json"
            other = bytes([draw.choice((0x00, 0x08, 0x7F, 0xFF))])
            clean(api("POST", path, whole[:place] + other + whole[place + 1 :], encoding))


@pytest.mark.parametrize("keyword", ["x-kubernetes-list-type", "x-kubernetes-map-type"])
@pytest.mark.parametrize("chosen", ["m\x7fp", "", "other"])
def test_a_definition_whose_lists_or_maps_are_of_no_known_type(api, keyword, chosen):
    widgets = json.loads(json.dumps(WIDGETS))
    (version,) = widgets["spec"]["versions"]
    part = {"type": "array", "items": {"type": "string"}, keyword: chosen}
    version["schema"]["openAPIV3Schema"]["properties"] = {"spec": part}
    widgets["metadata"]["name"] = "others.contract.test"
    message = refused(api("POST", CRDS, widgets), 422)
    assert "Unsupported value" in message


def odd_request(draw):
    """Method, path, body and content type."""
    kind = draw.choice(EXAMPLES)
    name = "gizmo" if kind.kind == "CustomResourceDefinition" else draw.choice("ab")
    document = odd_document(kind, name, draw)
    collection = kind.collection("default")
    one = f"{collection}/{kind.named(name, 'default')['metadata']['name']}"
    part = one + draw.choice(["", "", "/status"])
    query = f"?fieldManager={draw.choice('ab')}{draw.choice(['', '&force=true'])}"
    switch = draw.choice(["", "?dryRun=All", "?fieldValidation=Strict"])
    return draw.choice(
        [
            ("POST", collection + switch, document, "application/json"),
            ("POST", collection, kind.named(name, "default"), "application/json"),
            ("PUT", part, document, "application/json"),
            ("PATCH", part, document, MERGE),
            ("PATCH", part, with_directives(document, draw), STRATEGIC),
            ("PATCH", part + query, document, APPLY),
            ("PATCH", part, odd_operations(draw, document), JSON_PATCH),
            ("DELETE", one, odd_delete_options(draw), "application/json"),
            ("POST", draw.choice(SUBRESOURCES), odd_request_of_a_subresource(draw), ""),
            ("POST", draw.choice(REVIEWS), odd_request_of_a_subresource(draw), ""),
        ]
    )


@given(seed=st.integers(0, 2**32))
def test_any_document(api, seed):
    """Several in a row, so that what is stored is odd as well; and all of it can be shown."""
    draw = Draw(seed)
    for _ in range(8):
        method, path, body, content_type = odd_request(draw)
        clean(api(method, path, body, content_type))
    for kind in EXAMPLES:
        for accept in ("application/json", TABLE):
            assert api("GET", kind.collection("default"), accept=accept).status in (200, 404)


DEPTHS = (150, 198, 205, 900, 3_000, 100_000)


def nested(depth, opening, closing, inside):
    return opening * depth + inside + closing * depth


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    ("content_type", "opening", "closing", "inside"),
    [
        ("application/json", b"[", b"]", b""),
        ("application/json", b'{"a":', b"}", b"1"),
        ("application/json", b'{"spec":[', b"]}", b"{}"),
        ("application/yaml", b"{a: ", b"}", b"1"),
        ("application/yaml", b"[", b"]", b""),
        ("application/yaml", b"- ", b"", b"a"),
    ],
)
def test_what_is_nested_too_deep_is_refused(api, content_type, opening, closing, inside, depth):
    body = nested(depth, opening, closing, inside)
    for method, path in WRITES:
        if method in ("POST", "PUT"):
            answer = clean(api(method, path, body, content_type))
            assert answer.status == 400 or depth < 200


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    "place", ["spec", "status", "metadata", "data", "rules", "roleRef", "involvedObject"]
)
def test_a_field_that_is_nested_deep_ends_no_request(api, depth, place):
    value = nested(depth, b'{"a":', b"}", b"1")
    for kind in EXAMPLES:
        head = f'"apiVersion":"{kind.api_version}","kind":"{kind.kind}"'.encode()
        name = b'"metadata":{"name":"deep"},' if place != "metadata" else b""
        body = b"{" + head + b"," + name + b'"' + place.encode() + b'":' + value + b"}"
        collection = kind.collection("default")
        clean(api("POST", f"{collection}?dryRun=All", body))
        clean(api("PATCH", f"{collection}/deep?fieldManager=m&dryRun=All", body, APPLY))
        clean(api("PATCH", f"{collection}/deep?dryRun=All", body, MERGE))
        if depth > 200:
            refused(api("POST", collection, body), 400)


ANYTHING_GOES = {
    **WIDGETS,
    "metadata": {"name": "blobs.example.io"},
    "spec": {
        **WIDGETS["spec"],
        "names": {"kind": "Blob", "plural": "blobs"},
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


def test_patches_do_not_make_objects_deeper_than_one_can_be_sent(api):
    """Each copy doubles the depth, and what it weighs."""
    assert api("POST", CRDS, ANYTHING_GOES).status in (201, 409)
    blobs = "/apis/example.io/v1/namespaces/default/blobs"
    blob = {"apiVersion": "example.io/v1", "kind": "Blob", "metadata": {"name": "b"}}
    deepest = json.loads(nested(190, b'{"a":', b"}", b"1"))
    assert api("POST", blobs, blob | {"spec": deepest}).status == 201
    path = "/spec" + "/a" * 190
    deeper = [{"op": "copy", "from": "/spec", "path": path}]
    refused(api("PATCH", f"{blobs}/b", deeper, JSON_PATCH), 400, 422)
    merge = b'{"spec":' + nested(190, b'{"a":', b"}", b'{"b":[[[[[[[[[[[]]]]]]]]]]]}') + b"}"
    refused(api("PATCH", f"{blobs}/b", merge, MERGE), 400)
    heavy = [{"op": "add", "path": "/h", "value": "x" * 500_000}]
    heavy += [{"op": "copy", "from": "/h", "path": f"/h{n}"} for n in range(8)]
    refused(api("PATCH", f"{blobs}/b", heavy, JSON_PATCH), 413)
    many = [{"op": "test", "path": "/kind", "value": "Blob"}] * 10_001
    refused(api("PATCH", f"{blobs}/b", many, JSON_PATCH), 413)
    assert api("GET", f"{blobs}/b").json["spec"] == deepest


def test_aliases_that_stand_for_more_than_fits_are_refused(api):
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n"
    text = head + "\n".join(lines)
    assert "aliases" in refused(api("POST", MAPS, text.encode(), "application/yaml"), 400)
    itself = head + "data: &d {a: *d}"
    refused(api("POST", MAPS, itself.encode(), "application/yaml"), 400)


@pytest.mark.parametrize("content_type", OTHERS)
def test_other_encodings_are_named_as_such(api, content_type):
    message = refused(api("POST", MAPS, b"\xd9\xd9\xf7\xa0", content_type), 415)
    assert "application/json" in message
    refused(api("PATCH", f"{MAPS}/a?fieldManager=m", b"{}", content_type), 415)


TOO_LARGE = "ResourceVersionTooLarge"


@given(
    name=st.sampled_from(
        (
            *("limit", "continue", "resourceVersion", "resourceVersionMatch", "timeoutSeconds"),
            *("labelSelector", "fieldSelector", "propagationPolicy", "gracePeriodSeconds"),
            *("fieldManager", "fieldValidation", "force", "sendInitialEvents", "includeObject"),
            *("dryRun", "watch"),
        )
    ),
    value=st.one_of(st.text(max_size=12), st.integers().map(str), st.just("9" * 5000)),
)
def test_any_query(api, name, value):
    given = f"{name}={quote(value)}"
    for method, path in (
        ("GET", f"{MAPS}?{given}"),
        ("DELETE", f"{MAPS}/absent?{given}"),
        ("PUT", f"{MAPS}/a?{given}"),
        ("PATCH", f"{MAPS}/a?{given}"),
    ):
        body = b"" if method in ("GET", "DELETE") else b"{}"
        if (name, method) == ("watch", "GET"):
            continue
        answer = api(method, path, body, MERGE if method == "PATCH" else "application/json")
        if answer.status != 504 or answer.json["details"]["causes"][0]["reason"] != TOO_LARGE:
            clean(answer)


SEGMENTS = ("api", "apis", "v1", "namespaces", "default", "pods", "a", "status", "batch", "openapi")


@given(
    method=st.sampled_from(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")),
    segments=st.lists(st.one_of(st.sampled_from(SEGMENTS), st.text(max_size=8)), max_size=8),
    accept=st.one_of(st.just("*/*"), st.text(alphabet="aplictonjs/;=*,qv 1", max_size=30)),
)
def test_any_path(api, method, segments, accept):
    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    clean(api(method, path, b"{}", accept=accept))
