"""The control plane that scenarios share: each has a namespace of its own there."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from captfctl.model import keys
from captfctl.model.resources import TERRAFORM_CLUSTERS
from tests.e2e.site import LocalSite


@pytest.fixture(scope="session")
def shared_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSite]:
    site = LocalSite(tmp_path_factory.mktemp("shared") / "site")
    try:
        yield site
    finally:
        site.stop()


@pytest.fixture
def site(shared_site: LocalSite) -> Iterator[LocalSite]:
    """Running, with nothing of an earlier scenario that may still start something."""
    if not shared_site.up.alive:
        shared_site.start()
    yield shared_site
    if shared_site.up.alive:
        pause_everything(shared_site)


def pause_everything(site: LocalSite) -> None:
    with closing(site.door()) as door:
        for obj in door.list(TERRAFORM_CLUSTERS).items:
            patch = {"metadata": {"annotations": {keys.PAUSED: "true"}}}
            door.patch(TERRAFORM_CLUSTERS, obj.metadata.name, obj.metadata.namespace, patch)
