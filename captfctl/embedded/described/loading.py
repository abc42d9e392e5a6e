"""Described objects into an embedded store, as if a cluster had them."""

import copy
from collections.abc import Callable, Iterable
from typing import BinaryIO

from captfctl.clock import Clock
from captfctl.cluster.errors import AlreadyExists, ApiError, Invalid
from captfctl.embedded.described.checking import (
    check,
    check_metadata,
    oddities,
    resolve,
    violation,
)
from captfctl.embedded.described.objects import (
    BadInput,
    Described,
    DescribedSet,
    Identity,
    Violation,
)
from captfctl.embedded.described.parsing import Candidate, candidates
from captfctl.embedded.described.reading import texts
from captfctl.embedded.store import (
    DeniedByPolicy,
    EmbeddedStore,
    FieldValidation,
    Served,
    WriteOptions,
)
from captfctl.embedded.store.kinds.custom import UNCHECKED
from captfctl.model.core import Namespace
from captfctl.model.meta import ObjectMeta
from captfctl.model.resource import Document
from captfctl.model.resources import CRDS, NAMESPACES

Change = Callable[[Document | None], Document]

_STRICT = WriteOptions(field_validation=FieldValidation.STRICT, as_described=True)
_TRIAL = WriteOptions(dry_run=True, as_described=True)
"""Of an object that is refused already, for what else is wrong with it."""


def scratch_store(clock: Clock, installed: Iterable[Document]) -> EmbeddedStore:
    """A store in memory that serves Kubernetes' own kinds and has what is installed: definitions
    of further kinds, admission policies."""
    store = EmbeddedStore.in_memory(clock)
    for document in installed:
        served = store.registry.find_kind(document["apiVersion"], document["kind"])
        store.create(served, copy.deepcopy(document))
    return store


def load(
    paths: Iterable[str],
    store: EmbeddedStore,
    *,
    stdin: BinaryIO | None = None,
    recursive: bool = False,
    namespace: str = "default",
) -> DescribedSet:
    """Read the objects of `paths`, check them, and put them into `store`.

    Status, uid, creationTimestamp and owner references are kept as given; what is not given is
    absent (reconcile.md: Dry run). Namespaces that nobody describes are created. `namespace` is
    that of objects which name none. Kinds may be defined by CustomResourceDefinitions among the
    objects.

    Raises `BadInput` with everything that is wrong with any of them; `store` then holds those
    objects that were right and is of no further use.
    """
    return _Load(store, namespace).run(paths, stdin, recursive)


class _Load:
    def __init__(self, store: EmbeddedStore, namespace: str) -> None:
        self._store = store
        self._namespace = namespace
        self._violations: list[Violation] = []
        self._warnings: list[Violation] = []
        self._seen: dict[Identity, Described] = {}

    def run(self, paths: Iterable[str], stdin: BinaryIO | None, recursive: bool) -> DescribedSet:
        found = [
            candidate
            for text in texts(paths, self._violations, stdin=stdin, recursive=recursive)
            for candidate in candidates(text, self._violations)
        ]
        # Definitions come first, wherever they stand: the others may be of the kinds they define.
        for candidate in sorted(found, key=_rank):
            self._take(candidate)
        if self._violations:
            raise BadInput(sorted(self._violations, key=_order))
        place = {id(candidate.root): index for index, candidate in enumerate(found)}
        objects = sorted(self._seen.values(), key=lambda described: place[id(described.root)])
        return DescribedSet(tuple(objects), tuple(sorted(self._warnings, key=_order)))

    def _take(self, candidate: Candidate) -> None:
        resolved = resolve(candidate, self._store.registry, self._namespace, self._violations)
        if resolved is None:
            return
        described, served = resolved
        first = self._seen.setdefault(described.identity, described)
        if first is not described:
            message = f"this {candidate.kind} is described twice, first at {first.source}"
            self._violations.append(candidate.violation(message, "metadata.name"))
            return
        self._warnings += oddities(described, served)
        wrong = list(check(described, served))
        if wrong and not any(v.field.startswith("metadata") for v in wrong):
            wrong += check_metadata(described, served)
        self._violations += wrong
        if described.namespace:
            self._ensure_namespace(described.namespace)
        if wrong:
            trial = self._refused(described, lambda: self._try(described, served))
            self._violations += [v for v in trial if v.field and not _told(v, wrong)]
        else:
            self._violations += self._refused(described, lambda: self._put(described, served))

    def _refused(self, described: Described, write: Callable[[], None]) -> list[Violation]:
        """What the store says against a write; empty when it took place."""
        try:
            write()
        except DeniedByPolicy as error:
            return [violation(described, cause) for cause in error.problems or error.causes]
        except Invalid as error:
            told = (cause for cause in error.causes if cause != UNCHECKED)
            causes = [violation(described, cause) for cause in told]
            return causes or [Violation(described.source, str(error))]
        except ApiError as error:
            return [Violation(described.source, str(error))]
        return []

    def _try(self, described: Described, served: Served) -> None:
        document = copy.deepcopy(described.document)
        self._store.create(served, document, described.namespace, _TRIAL)

    def _put(self, described: Described, served: Served) -> None:
        document = copy.deepcopy(described.document)
        try:
            self._store.create(served, document, described.namespace, _STRICT)
        except AlreadyExists:
            # The store's own: a namespace or a definition that it came with.
            self._store.modify(
                served, described.name, described.namespace, _as_described(described), _STRICT
            )

    def _ensure_namespace(self, name: str) -> None:
        try:
            self._store.door().create(NAMESPACES, Namespace(metadata=ObjectMeta(name=name)))
        except AlreadyExists:
            pass
        except Invalid:
            return  # the object itself is refused for it, with its line


def _told(violation: Violation, known: list[Violation]) -> bool:
    """Whether it is known, or only follows from what is wrong below its field."""
    return any(known_one.field.startswith(violation.field) for known_one in known)


def _as_described(described: Described) -> Change:
    def change(current: Document | None) -> Document:
        assert current is not None
        document = copy.deepcopy(described.document)
        document["metadata"] = current["metadata"] | document["metadata"]
        return document

    return change


def _rank(candidate: Candidate) -> int:
    order = (CRDS.kind, NAMESPACES.kind)
    return order.index(candidate.kind) if candidate.kind in order else len(order)


def _order(violation: Violation) -> tuple[str, int]:
    return violation.source.file, violation.source.line
