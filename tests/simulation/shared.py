"""Lists for those who only look: objects that did not change are decoded once."""

from functools import lru_cache
from typing import Any

from captfctl.cluster.door import Page
from captfctl.embedded.store.door import EmbeddedDoor
from captfctl.embedded.store.requests import ListOptions
from captfctl.model.resource import Resource


@lru_cache(maxsize=4096)
def _decoded(resource: Resource[Any], body: bytes) -> Any:
    return resource.decode(body)


class SharedLists(EmbeddedDoor):
    """What a list gives belongs to all who list: it must not be changed. `get` gives a copy."""

    def list(
        self,
        resource: Resource[Any],
        namespace: str = "",
        *,
        labels: str = "",
        limit: int = 0,
        continue_token: str = "",
    ):
        options = ListOptions(labels=labels, limit=limit, continue_token=continue_token)
        found = self._store.list(self._served(resource), namespace, options)
        items = [_decoded(resource, body) for body in found.items]
        return Page(items, found.resource_version, found.continue_token, found.remaining)
