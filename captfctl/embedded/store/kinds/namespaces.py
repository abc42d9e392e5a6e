"""Namespaces: they end in two steps, so that their contents can go first."""

from datetime import datetime

from captfctl.embedded.store.naming import NameRule
from captfctl.embedded.store.strategy import Typed
from captfctl.model.resource import Document

PERMANENT = ("default", "kube-system", "kube-public")
BOOTSTRAP = ("default", "kube-node-lease", "kube-public", "kube-system")
NAME_LABEL = "kubernetes.io/metadata.name"
_FINALIZER = "kubernetes"


class NamespaceStrategy(Typed):
    """The controller that has emptied a namespace removes its spec's finalizer, by `finalize`."""

    name_rule = NameRule.LABEL
    has_status = True
    deletes_collections = False
    subresources = frozenset(["finalize"])

    def prepare_create(self, document: Document, now: datetime) -> None:
        super().prepare_create(document, now)
        document["spec"] = {"finalizers": [_FINALIZER]}
        document["status"] = {"phase": "Active"}
        _label(document)

    def prepare_update(self, document: Document, old: Document, subresource: str) -> Document:
        if subresource == "finalize":
            finalizers = document.get("spec", {}).get("finalizers", [])
            spec = {"finalizers": finalizers} if finalizers else {}
            return old | {"spec": spec, "metadata": document["metadata"]}
        result = super().prepare_update(document, old, subresource)
        result["spec"] = old.get("spec", {})
        _label(result)
        return result

    def removable(self, document: Document) -> bool:
        return not document.get("spec", {}).get("finalizers")

    def mark_deleting(self, document: Document) -> None:
        document["status"]["phase"] = "Terminating"

    def refuses_delete(self, name: str) -> str:
        return "this namespace may not be deleted" if name in PERMANENT else ""


def _label(document: Document) -> None:
    metadata = document["metadata"]
    if name := metadata.get("name"):
        metadata.setdefault("labels", {})[NAME_LABEL] = name
