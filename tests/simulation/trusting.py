"""A store that believes what it is given, for processes that try many seeds.

It neither validates objects nor asks admission, which is a quarter of what a course costs. What a
manager writes is valid, so a course tells the same story; one that only the checks would break is
found by a run without this.
"""

from captfctl.embedded.store import writes
from captfctl.embedded.store.kinds import custom
from captfctl.embedded.store.strategy import Typed
from captfctl.model.resource import Document


def believe() -> None:
    """From now on, in all stores of this process."""
    custom.CustomStrategy.check = lambda *_: []
    custom.prune = lambda *_, **__: None
    Typed.read = _read
    writes.admit = lambda *_: ()


def _read(kind: Typed, document: Document, unknown: list[str]) -> Document:
    kind.default(document)
    return document
