"""Deleting a definition deletes its objects; when the last is gone, the definition goes."""

from captfctl.cluster.errors import ApiError
from captfctl.embedded.store import writes
from captfctl.embedded.store.collection import Record
from captfctl.embedded.store.engine import Engine, Moved
from captfctl.embedded.store.kinds.definitions import CLEANUP
from captfctl.embedded.store.objects import decode
from captfctl.embedded.store.registry import Served
from captfctl.embedded.store.requests import DeleteOptions
from captfctl.model.resources import CRDS


class DefinitionCleanup:
    """Removes the objects of definitions that are being deleted."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._definitions = engine.registry.find(CRDS.group, CRDS.version, CRDS.plural)

    def resume(self) -> None:
        """Go on with what an earlier process left half done."""
        self.after(self._definitions)

    def after(self, served: Served) -> None:
        """Called after every write to `served`."""
        if served.storage == CRDS.name:
            for record in tuple(self._records(self._definitions).values()):
                self._work_off(record)
        elif served.custom:
            definition = self._records(self._definitions).get(served.storage)
            if definition is not None:
                self._work_off(definition)

    def _records(self, served: Served) -> dict[str, Record]:
        return self._engine.collection(served).records

    def _work_off(self, definition: Record) -> None:
        if b'"deletionTimestamp"' not in definition.body:
            return
        metadata = decode(definition.body)["metadata"]
        if "deletionTimestamp" not in metadata or CLEANUP not in metadata.get("finalizers", ()):
            return
        served = self._engine.registry.of_storage(definition.name)
        left = self._records(served[0]) if served else {}
        for record in tuple(left.values()):
            if b'"deletionTimestamp"' not in record.body:
                self._delete(served[0], record)
        if not left:
            self._finish(definition)

    def _delete(self, served: Served, record: Record) -> None:
        try:
            writes.delete(self._engine, served, record.name, record.namespace, DeleteOptions())
        except ApiError as error:
            if error.reason != "NotFound":
                raise

    def _finish(self, definition: Record) -> None:
        document = decode(definition.body)
        finalizers = document["metadata"]["finalizers"]
        finalizers.remove(CLEANUP)
        try:
            if finalizers:
                self._engine.commit(self._definitions, definition, document)
            else:
                self._engine.remove(self._definitions, definition)
        except Moved:
            self.after(self._definitions)
