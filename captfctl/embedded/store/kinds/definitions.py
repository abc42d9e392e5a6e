"""CustomResourceDefinitions: accepted, established and turned into what is served."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from captfctl.cluster.errors import Cause
from captfctl.embedded.store.kinds.custom import CustomStrategy
from captfctl.embedded.store.kinds.definition_schemas import check_schema, compiled
from captfctl.embedded.store.metadata import kubernetes_time
from captfctl.embedded.store.naming import label_problems, subdomain_problems
from captfctl.embedded.store.registry import PrinterColumn, Served
from captfctl.embedded.store.strategy import Typed
from captfctl.embedded.store.views import VersionView
from captfctl.embedded.store.violations import (
    child,
    forbidden,
    immutable,
    invalid,
    required,
    unsupported,
)
from captfctl.model.resource import Document, Resource

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_MESSAGES = {
    "NoConflicts": "no conflicts found",
    "InitialNamesAccepted": "the initial names have been accepted",
    "InstanceDeletionInProgress": "the definition's objects are being removed",
}
_NO_NAMES = {"kind": "", "plural": ""}
_SCOPES = ("Cluster", "Namespaced")


class DefinitionStrategy(Typed):
    """`taken` gives the names in a group that belong to other definitions, with their owner."""

    has_status = True
    has_generation = True

    def __init__(
        self, resource: Resource[Document], taken: Callable[[str, str], dict[str, str]]
    ) -> None:
        super().__init__(resource)
        self._taken = taken

    def default(self, document: Document) -> None:
        spec = document["spec"]
        spec.setdefault("conversion", {"strategy": "None"})
        names = spec["names"]
        if kind := names["kind"]:
            names.setdefault("singular", kind.lower())
            names.setdefault("listKind", f"{kind}List")
        for version in spec.get("versions", ()):
            for column in version.get("additionalPrinterColumns", ()):
                if column.get("priority") == 0:
                    del column["priority"]

    def prepare_create(self, document: Document, now: datetime) -> None:
        super().prepare_create(document, now)
        finalizers = document["metadata"].setdefault("finalizers", [])
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)
        problem = self._conflicts(document)
        at = kubernetes_time(now)
        document["status"] = {
            "conditions": [
                _condition("NamesAccepted", at, "NoConflicts", problem),
                _condition("Established", at, "InitialNamesAccepted", problem),
            ],
            "acceptedNames": _NO_NAMES if problem else document["spec"]["names"],
            "storedVersions": _stored_versions(document, {}),
        }

    def prepare_update(self, document: Document, old: Document, subresource: str) -> Document:
        result = super().prepare_update(document, old, subresource)
        finalizers = result["metadata"].setdefault("finalizers", [])
        if CLEANUP in old["metadata"].get("finalizers", ()) and CLEANUP not in finalizers:
            # Only the store removes it, when the last object is gone.
            finalizers.append(CLEANUP)
        if not finalizers:
            del result["metadata"]["finalizers"]
        if subresource or not established(old):
            return result
        status = dict(old["status"])
        status["storedVersions"] = _stored_versions(result, status)
        if not self._conflicts(result):
            status["acceptedNames"] = result["spec"]["names"]
        return result | {"status": status}

    def _conflicts(self, document: Document) -> str:
        spec = document["spec"]
        taken = self._taken(spec.get("group", ""), document["metadata"].get("name", ""))
        for name in all_names(spec["names"]):
            if owner := taken.get(name.lower()):
                return f'"{name}" is already in use by {owner}'
        return ""

    def mark_deleting(self, document: Document) -> None:
        at = document["metadata"]["deletionTimestamp"]
        conditions = document.setdefault("status", {}).setdefault("conditions", [])
        conditions.append(_condition("Terminating", at, "InstanceDeletionInProgress"))

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        if subresource:
            return []
        causes = list(_check_names(document))
        causes += _check_versions(document["spec"].get("versions", []))
        if document["spec"]["conversion"].get("strategy") != "None":
            options = ("None",)
            found = document["spec"]["conversion"].get("strategy", "")
            causes.append(unsupported("spec.conversion.strategy", found, options))
        if old is not None:
            causes += _check_change(document["spec"], old["spec"])
        return causes


def _condition(kind: str, at: str, reason: str, problem: str = "") -> Document:
    return {
        "type": kind,
        "status": "False" if problem else "True",
        "lastTransitionTime": at,
        "reason": "NotAccepted" if problem else reason,
        "message": problem or _MESSAGES[reason],
    }


def _stored_versions(document: Document, before: Document) -> list[str]:
    """The versions that objects were ever stored in, the present one last."""
    found = list(before.get("storedVersions", ()))
    for version in document["spec"].get("versions", ()):
        if version.get("storage") and version.get("name") not in (None, *found):
            found.append(version["name"])
    return found


def all_names(names: Document) -> Iterator[str]:
    """Every name a definition claims in its group."""
    for key in ("plural", "singular", "kind", "listKind"):
        if name := names.get(key):
            yield name
    yield from names.get("shortNames", ())


def _check_names(document: Document) -> Iterator[Cause]:
    spec, name = document["spec"], document["metadata"].get("name", "")
    names, group = spec["names"], spec.get("group", "")
    if not group:
        yield required("spec.group")
    for problem in subdomain_problems(group) if group else ():
        yield invalid("spec.group", group, problem)
    for key in ("plural", "singular", "kind", "listKind"):
        found = names.get(key, "")
        if not found:
            yield required(f"spec.names.{key}")
        for problem in label_problems(found.lower()) if found else ():
            yield invalid(f"spec.names.{key}", found, problem)
    if spec.get("scope") not in _SCOPES:
        yield unsupported("spec.scope", spec.get("scope", ""), _SCOPES)
    wanted = f"{names.get('plural', '')}.{group}"
    if name != wanted:
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _check_versions(versions: list[Document]) -> Iterator[Cause]:
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", [v.get("name", "") for v in versions], detail)
    seen = set()
    for index, version in enumerate(versions):
        path = child("spec.versions", index)
        name = version.get("name", "")
        if name in seen:
            yield invalid(child(path, "name"), name, "must be unique")
        seen.add(name)
        for problem in label_problems(name):
            yield invalid(child(path, "name"), name, problem)
        where = child(path, "schema.openAPIV3Schema")
        schema = version.get("schema", {}).get("openAPIV3Schema")
        if schema is None:
            yield required(where, "schemas are required")
        else:
            yield from check_schema(schema, where)


def _check_change(spec: Document, old: Document) -> Iterator[Cause]:
    for path in ("group", "scope", "names.plural", "names.kind"):
        if _at(spec, path) != _at(old, path):
            yield immutable(f"spec.{path}", _at(spec, path))
    if not spec.get("versions"):
        yield forbidden("spec.versions", "must have at least one version")


def _at(spec: Document, path: str) -> Any:
    value: Any = spec
    for part in path.split("."):
        value = value.get(part, {})
    return value


def established(document: Document) -> bool:
    """Whether a definition is served."""
    conditions = document.get("status", {}).get("conditions", ())
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def served_versions(document: Document) -> list[Served]:
    """What a definition serves: nothing while it is not established."""
    if not established(document):
        return []
    spec = document["spec"]
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    return [
        _served(spec, version, f"{spec['group']}/{stored}")
        for version in spec["versions"]
        if version.get("served")
    ]


def _served(spec: Document, version: Document, stored_as: str) -> Served:
    names, group = spec["names"], spec["group"]
    schema = version["schema"]["openAPIV3Schema"]
    node = compiled(msgspec.json.encode(schema))
    resource = Resource(
        group,
        version["name"],
        names["kind"],
        names["plural"],
        spec["scope"] == "Namespaced",
        Document,
    )
    return Served(
        resource=resource,
        storage=resource.name,
        singular=names["singular"],
        strategy=CustomStrategy(node, "status" in version.get("subresources", {})),
        view=VersionView(resource.api_version, stored_as),
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        schema=node,
        published=schema,
        columns=tuple(_column(column) for column in version.get("additionalPrinterColumns", ())),
        list_kind=names["listKind"],
        custom=True,
        selectable=tuple(
            field["jsonPath"].lstrip(".") for field in version.get("selectableFields", ())
        ),
    )


def _column(column: Document) -> PrinterColumn:
    return PrinterColumn(
        name=column.get("name", ""),
        type=column.get("type", ""),
        json_path=column.get("jsonPath", ""),
        description=column.get("description", ""),
        format=column.get("format", ""),
        priority=column.get("priority", 0),
    )
