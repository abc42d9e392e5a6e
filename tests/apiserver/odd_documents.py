"""Documents of every kind that follow its schema here and there, and otherwise hold anything."""

import copy
import random
from collections.abc import Iterable

from captfctl.embedded.schemas import Node, builtin, compile_schema, node_of
from tests.apiserver.conftest import WIDGETS
from tests.apiserver.examples import Example

DEPTH = 9
ANYTHING = (
    *(None, True, False, 0, 1, -1, 5, 2**70, -(2**63), 1e300, 1.5),
    *("", "a", "x" * 300, "default", "é\u0000", "1Gi", "80%", "dg==", "Never", "name", "{}"),
    *("2020-01-01T00:00:00Z", "2020-01-01T00:00:00.000000Z", "0000-00-00T00:00:00Z"),
    *([], {}, [None], [[]], {"a": None}, {"": {}}, [1, "a", {}]),
    *({"f:a": 5}, {"k:x": {}}, {"v:": {}}, {"f:a": {".": {}}}),
)
DIRECTIVES = (
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
)


class Draw(random.Random):
    """Draws copies, so that what is drawn may be changed."""

    def choice(self, options):
        return copy.deepcopy(super().choice(options))

    def some(self, options: Iterable[str], chance: float) -> list[str]:
        return [option for option in options if self.random() < chance]


def following(node: Node, draw: Draw, depth: int = 0):
    """A value that follows a schema, for the most part."""
    if draw.random() < 0.02:
        return draw.choice(ANYTHING)
    if node.int_or_string:
        return draw.choice([1, "1", "80%"])
    match node.type:
        case "object":
            return _object(node, draw, depth)
        case "array":
            count = draw.randrange(3) if depth < DEPTH else 0
            return [following(node.item, draw, depth + 1) for _ in range(count)]
        case "string":
            return _text(node, draw)
        case "integer" | "number":
            return draw.choice([0, 1, 2, 80, -1, 30])
        case "boolean":
            return draw.random() < 0.5
    return draw.choice(ANYTHING)


def _object(node: Node, draw: Draw, depth: int):
    if node.properties:
        chance = 0.5 if depth < 2 else 0.25 if depth < 5 else 0.1
        wanted = draw.some(node.properties, chance)
        return {name: following(node.properties[name], draw, depth + 1) for name in wanted}
    if node.additional and depth < DEPTH:
        return {key: following(node.additional, draw, depth + 1) for key in draw.some("ab", 0.5)}
    return draw.choice([{}, {"a": 1}, {"f:a": {}}, {"f:metadata": {"f:labels": {".": {}}}}])


def _text(node: Node, draw: Draw) -> str:
    match node.format:
        case "byte":
            return draw.choice(["dg==", "", "abcd"])
        case "date-time":
            return draw.choice(["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.000000Z"])
    return draw.choice(["a", "b", "", "default", "v1", "Never", "1Gi", "string", "object"])


def damaged(value, draw: Draw):
    """`value` with anything in one of its places."""
    if isinstance(value, dict | list) and value and draw.random() < 0.7:
        places = list(value) if isinstance(value, dict) else range(len(value))
        place = random.Random.choice(draw, places)
        value[place] = damaged(value[place], draw)
        return value
    return draw.choice(ANYTHING)


def odd_document(example: Example, name: str, draw: Draw):
    """An object of the example's kind: the example with parts of it drawn, then damaged."""
    document = example.named(name, "default")
    if example.status is not None:
        document["status"] = copy.deepcopy(example.status)
    drawn = following(_schema(example), draw)
    if isinstance(drawn, dict):
        for key in draw.some(sorted(drawn.keys() - {"apiVersion", "kind"}), 0.5):
            _lay_over(document, key, drawn[key])
    for _ in range(draw.randrange(3)):
        document = damaged(document, draw)
    return document


def _schema(example: Example) -> Node:
    group, _, version = example.api_version.rpartition("/")
    name = builtin.name_of(group, version, example.kind)
    if name:
        return node_of(name)
    return compile_schema(WIDGETS["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


def _lay_over(document: dict, key: str, drawn) -> None:
    before = document.get(key)
    both = isinstance(before, dict) and isinstance(drawn, dict)
    document[key] = (
        drawn | before if both and key == "metadata" else (before | drawn if both else drawn)
    )


def with_directives(patch, draw: Draw):
    """A strategic merge patch with directives somewhere in it."""
    place = patch
    for directive in draw.some(DIRECTIVES, 0.3):
        while isinstance(place, dict) and place and draw.random() < 0.5:
            place = place[random.Random.choice(draw, list(place))]
        if isinstance(place, dict):
            place[directive] = draw.choice(["replace", "delete", ["a"], *ANYTHING])
    return patch


def odd_operations(draw: Draw, value):
    """A JSON patch, more or less."""
    places = (
        *("", "/", "/spec", "/spec/x/-", "/spec/containers/0/name", "/spec/containers/-"),
        *("/metadata", "/metadata/labels", "/metadata/name", "/metadata/managedFields/0"),
        *("/data/a", "/status", "/a~", "~", 5, None),
    )
    operations = [
        {
            "op": draw.choice(["add", "remove", "replace", "copy", "move", "test", "x"]),
            "path": draw.choice(places),
            "from": draw.choice(places),
            "value": draw.choice([value, *ANYTHING]),
        }
        for _ in range(draw.randrange(4))
    ]
    return damaged(operations, draw) if draw.random() < 0.2 else operations


def odd_delete_options(draw: Draw):
    conditions = {"uid": draw.choice(ANYTHING), "resourceVersion": draw.choice(ANYTHING)}
    options = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": draw.choice(ANYTHING),
        "preconditions": draw.choice([conditions, *ANYTHING]),
        "propagationPolicy": draw.choice(["Orphan", "Foreground", *ANYTHING]),
        "orphanDependents": draw.choice(ANYTHING),
        "dryRun": draw.choice([["All"], *ANYTHING]),
    }
    return {key: options[key] for key in draw.some(options, 0.4)}


def odd_request_of_a_subresource(draw: Draw):
    """The body of a TokenRequest, a Binding or a review."""
    bound = {"kind": "Pod", "name": draw.choice(ANYTHING), "uid": draw.choice(ANYTHING)}
    spec = {
        "audiences": draw.choice(ANYTHING),
        "expirationSeconds": draw.choice([600, *ANYTHING]),
        "boundObjectRef": draw.choice([bound, *ANYTHING]),
        "token": draw.choice(ANYTHING),
    }
    target = {"kind": "Node", "name": draw.choice(ANYTHING)}
    body = {
        "spec": draw.choice([{k: spec[k] for k in draw.some(spec, 0.5)}, *ANYTHING]),
        "target": draw.choice([target, *ANYTHING]),
        "metadata": draw.choice([{"name": "a"}, *ANYTHING]),
    }
    return damaged(body, draw) if draw.random() < 0.3 else body
