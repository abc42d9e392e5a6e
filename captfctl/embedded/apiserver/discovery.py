"""Discovery: which groups, versions and resources are served, in both of the API's forms."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from captfctl.embedded.apiserver.replies import JSON, Reply, json_reply
from captfctl.embedded.apiserver.requests import Accepted, Form
from captfctl.embedded.store import Registry, Served
from captfctl.model.resource import Document

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_ONE_BY_ONE = tuple(verb for verb in VERBS if verb != "deletecollection")
HEALTH = ("/healthz", "/livez", "/readyz")
STATUS_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """`kind` as (group, version, kind): what its body is; group and version empty: the parent's."""

    name: str
    kind: tuple[str, str, str]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One resource in the lists."""

    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()


@dataclass(slots=True)
class Group:
    """A group; `versions` in order of preference."""

    name: str
    versions: dict[str, list[Entry]] = field(default_factory=dict)


def _review(plural: str, kind: str, namespaced: bool = False) -> Entry:
    return Entry(plural, kind.lower(), kind, namespaced, ("create",))


REVIEWS: dict[str, tuple[Entry, ...]] = {
    "authentication.k8s.io": (
        _review("selfsubjectreviews", "SelfSubjectReview"),
        _review("tokenreviews", "TokenReview"),
    ),
    "authorization.k8s.io": (
        _review("localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
        _review("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        _review("selfsubjectrulesreviews", "SelfSubjectRulesReview"),
        _review("subjectaccessreviews", "SubjectAccessReview"),
    ),
}
"""Resources that are answered at once and never stored, all in version v1."""

_EXTRA: dict[tuple[str, str], tuple[Subresource, ...]] = {
    ("", "pods"): (
        Subresource("binding", ("", "v1", "Binding"), ("create",)),
        Subresource("log", ("", "v1", "Pod"), ("get",)),
    ),
    ("", "serviceaccounts"): (
        Subresource("token", ("authentication.k8s.io", "v1", "TokenRequest"), ("create",)),
    ),
}


def groups(registry: Registry) -> list[Group]:
    """Everything that is served, the core group (named "") first."""
    found: dict[str, Group] = {"": Group("")}
    for name, versions in registry.groups().items():
        found[name] = Group(name, {version: [] for version in versions})
    for served in registry:
        resource = served.resource
        found[resource.group].versions.setdefault(resource.version, []).append(_entry(served))
    for name, entries in REVIEWS.items():
        reviews = found.setdefault(name, Group(name)).versions.setdefault("v1", [])
        known = {entry.plural for entry in reviews}
        reviews.extend(entry for entry in entries if entry.plural not in known)
    return list(found.values())


def _entry(served: Served) -> Entry:
    resource = served.resource
    subresources = list(_EXTRA.get((resource.group, resource.plural), ()))
    if served.status:
        kind = (resource.group, resource.version, resource.kind)
        subresources.append(Subresource("status", kind, STATUS_VERBS))
    return Entry(
        resource.plural,
        served.singular,
        resource.kind,
        resource.namespaced,
        VERBS if served.strategy.deletes_collections else _ONE_BY_ONE,
        served.short_names,
        served.categories,
        tuple(subresources),
    )


class Discovery:
    """The discovery documents, made again only when the served resources changed."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._made: tuple[int, list[Group]] = (-1, [])

    def _groups(self) -> list[Group]:
        version = self._registry.version
        if self._made[0] != version:
            self._made = (version, groups(self._registry))
        return self._made[1]

    def answer(self, path: str, accepted: Accepted) -> Reply | None:
        """The document at a discovery path; None when there is no such group or version."""
        parts = [part for part in path.split("/") if part]
        match parts:
            case []:
                return json_reply({"paths": self._paths()})
            case ["api"]:
                return self._root([g for g in self._groups() if not g.name], accepted, _versions)
            case ["apis"]:
                named = [group for group in self._groups() if group.name]
                return self._root(named, accepted, _group_list)
            case ["api", version]:
                return self._resources("", version)
            case ["apis", name]:
                group = self._find(name)
                return json_reply({**_HEAD_GROUP, **_group(group)}) if group else None
            case ["apis", name, version]:
                return self._resources(name, version)
        return None

    def _paths(self) -> list[str]:
        """Where something can be found, for people who look around."""
        versions = [
            f"/apis/{g.name}/{v}" if g.name else f"/api/{v}"
            for g in self._groups()
            for v in g.versions
        ]
        return ["/api", "/apis", *versions, *HEALTH, "/openapi/v2", "/openapi/v3", "/version"]

    def _find(self, name: str) -> Group | None:
        return next((group for group in self._groups() if group.name == name), None)

    def _root(self, found: list[Group], accepted: Accepted, legacy: Any) -> Reply:
        if accepted.form is not Form.DISCOVERY:
            return json_reply(legacy(found))
        version = accepted.version or "v2"
        content_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return json_reply(_aggregated(found, version), content_type=content_type)

    def _resources(self, name: str, version: str) -> Reply | None:
        group = self._find(name)
        if group is None or version not in group.versions:
            return None
        return json_reply(
            {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": _group_version(name, version),
                "resources": list(_legacy(group.versions[version])),
            }
        )


_HEAD_GROUP = {"kind": "APIGroup", "apiVersion": "v1"}


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _versions(found: list[Group]) -> Document:
    versions = [version for group in found for version in group.versions]
    return {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []}


def _group_list(found: list[Group]) -> Document:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(g) for g in found]}


def _group(group: Group) -> Document:
    versions = [
        {"groupVersion": _group_version(group.name, version), "version": version}
        for version in group.versions
    ]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _legacy(entries: Iterable[Entry]) -> Iterable[Document]:
    for entry in entries:
        resource: Document = {
            "name": entry.plural,
            "singularName": entry.singular,
            "namespaced": entry.namespaced,
            "kind": entry.kind,
            "verbs": entry.verbs,
        }
        if entry.short_names:
            resource["shortNames"] = entry.short_names
        if entry.categories:
            resource["categories"] = entry.categories
        yield resource
        for sub in entry.subresources:
            group, version, kind = sub.kind
            yield {
                "name": f"{entry.plural}/{sub.name}",
                "singularName": "",
                "namespaced": entry.namespaced,
                "group": group,
                "version": version,
                "kind": kind,
                "verbs": sub.verbs,
            }


def _aggregated(found: list[Group], version: str) -> Document:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group.name, "creationTimestamp": None},
                "versions": [
                    {
                        "version": name,
                        "freshness": "Current",
                        "resources": [_modern(group.name, name, entry) for entry in entries],
                    }
                    for name, entries in group.versions.items()
                ],
            }
            for group in found
        ],
    }


def _modern(group: str, version: str, entry: Entry) -> Document:
    return {
        "resource": entry.plural,
        "responseKind": {"group": group, "version": version, "kind": entry.kind},
        "scope": "Namespaced" if entry.namespaced else "Cluster",
        "singularResource": entry.singular,
        "verbs": entry.verbs,
        "shortNames": entry.short_names,
        "categories": entry.categories,
        "subresources": [
            {
                "subresource": sub.name,
                "responseKind": dict(zip(("group", "version", "kind"), sub.kind, strict=True)),
                "verbs": sub.verbs,
            }
            for sub in entry.subresources
        ],
    }
