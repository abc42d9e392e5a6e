"""What `captfctl get` reads and shows."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from captfctl.cli.connect import cluster_door
from captfctl.cli.described_input import known_kinds
from captfctl.cli.options import data_dir
from captfctl.cli.output import Document, Format, Listing, Row, show
from captfctl.clock import Clock, SystemClock
from captfctl.cluster.door import Door
from captfctl.embedded.apiserver.tables import IncludeObject, table
from captfctl.embedded.store import Registry, Served
from captfctl.errors import InputError, nearest

_NAMESPACE = "Namespace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which objects: `name` empty means all of the kinds, `namespace` empty those of every one."""

    kinds: str
    name: str
    namespace: str
    selector: str


def get(query: Query, data: Path | None, kubeconfig: Path | None, output: Format) -> None:
    """Raises `InputError` for an unknown kind, `NotFound` for an object that is not there."""
    clock = SystemClock()
    registry = known_kinds(clock).registry
    kinds = [_find(registry, kind) for kind in query.kinds.split(",")]
    with cluster_door(kubeconfig, data_dir(data), clock) as door:
        listings = [_read(door, served, query, clock, several=len(kinds) > 1) for served in kinds]
    if output in (Format.JSON, Format.YAML):
        show(
            _as_kubectl(listings, single=bool(query.name) and len(kinds) == 1), output, single=True
        )
        return
    # As kubectl: of several kinds, only those are shown that there is something of.
    shown = [listing for listing in listings if listing.rows]
    if not shown:
        print("No resources found", file=sys.stderr)
    for index, listing in enumerate(shown):
        if index and output is not Format.NAME:
            print()
        show(listing, output)


def _read(door: Door, served: Served, query: Query, clock: Clock, *, several: bool) -> Listing:
    if query.name:
        place = query.namespace or ("default" if served.resource.namespaced else "")
        documents = [door.get(served.resource, query.name, place)]
    else:
        documents = door.list(served.resource, query.namespace, labels=query.selector).items
    everywhere = not query.namespace and not query.name
    listing = _listing(served, documents, clock, namespaces=everywhere)
    return _with_kinds(listing) if several else listing


def _with_kinds(listing: Listing) -> Listing:
    """Names with their kind, as kubectl writes them when it shows several."""
    column = listing.columns.index("Name")
    rows = [
        replace(row, cells=[*row.cells[:column], row.name, *row.cells[column + 1 :]])
        for row in listing.rows
    ]
    return replace(listing, rows=rows)


def _find(registry: Registry, kind: str) -> Served:
    wanted = kind.lower()
    known: list[str] = []
    for served in registry:
        if wanted in served.names or wanted == served.resource.name:
            return served
        known += served.names
    near = nearest(wanted, known)
    hint = f"did you mean {near}?" if near else "kubectl api-resources lists what there is"
    raise InputError(f"there is no kind called {kind!r}", do=hint)


def _listing(
    served: Served, documents: list[Document], clock: Clock, *, namespaces: bool
) -> Listing:
    bodies = [msgspec.json.encode(document) for document in documents]
    printed = msgspec.json.decode(table(served, bodies, clock.now(), include=IncludeObject.NONE))
    definitions = printed["columnDefinitions"]
    first = [_NAMESPACE] if namespaces and served.resource.namespaced else []
    columns = first + [definition["name"] for definition in definitions]
    wide = frozenset(d["name"] for d in definitions if d["priority"] > 0)
    rows = []
    for document, row in zip(documents, printed["rows"], strict=True):
        metadata = document["metadata"]
        cells = [metadata.get("namespace", "")] if first else []
        cells += [_cell(cell) for cell in row["cells"]]
        shown = dict(sorted(document.items()))  # metadata before spec, spec before status
        rows.append(Row(cells, shown, f"{served.singular}/{metadata['name']}"))
    return Listing(columns, rows, wide)


def _cell(cell: Any) -> str:
    """As kubectl prints it: nothing is `<none>`, and truth values are in lower case."""
    if cell is None or cell == "":
        return "<none>"
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _as_kubectl(listings: list[Listing], *, single: bool) -> Listing:
    """Several objects as a `List`, one that was asked for by name as itself."""
    if single:
        return listings[0]
    items = [row.document for listing in listings for row in listing.rows]
    whole: Document = {"apiVersion": "v1", "kind": "List", "items": items}
    return Listing((), [Row((), whole, "")])
