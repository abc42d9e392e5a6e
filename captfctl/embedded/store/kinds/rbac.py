"""Roles and bindings: checked for form; whom they allow what is not decided here."""

from captfctl.cluster.errors import Cause
from captfctl.embedded.store.naming import NameRule
from captfctl.embedded.store.strategy import Typed
from captfctl.embedded.store.violations import child, immutable, required, unsupported
from captfctl.model.resource import Document

GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


class RoleStrategy(Typed):
    """Roles and ClusterRoles."""

    name_rule = NameRule.PATH

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        causes = []
        for index, entry in enumerate(document.get("rules", ())):
            path = child("rules", index)
            if not entry.get("verbs"):
                causes.append(
                    required(child(path, "verbs"), "verbs must contain at least one value")
                )
            if entry.get("nonResourceURLs"):
                continue
            causes += [
                required(child(path, field), "at least one value is needed")
                for field in ("apiGroups", "resources")
                if not entry.get(field)
            ]
        return causes


class BindingStrategy(Typed):
    """RoleBindings and ClusterRoleBindings."""

    name_rule = NameRule.PATH

    def default(self, document: Document) -> None:
        document["roleRef"]["apiGroup"] = document["roleRef"]["apiGroup"] or GROUP
        for subject in document.get("subjects", ()):
            if subject.get("kind") in ("User", "Group"):
                subject.setdefault("apiGroup", GROUP)

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        role = document.get("roleRef", {})
        causes = [] if role.get("name") else [required("roleRef.name")]
        if role.get("kind") not in ("Role", "ClusterRole"):
            options = ("Role", "ClusterRole")
            causes.append(unsupported("roleRef.kind", role.get("kind", ""), options))
        if old is not None and role != old.get("roleRef"):
            causes.append(immutable("roleRef", role))
        for index, subject in enumerate(document.get("subjects", ())):
            path = child("subjects", index)
            if not subject.get("name"):
                causes.append(required(child(path, "name")))
            kind = subject.get("kind", "")
            if kind not in _SUBJECTS:
                causes.append(unsupported(child(path, "kind"), kind, _SUBJECTS))
            if kind == "ServiceAccount" and not subject.get("namespace"):
                causes.append(required(child(path, "namespace")))
        return causes
