"""One control plane per test process, started by the first test that needs it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.assets import Assets, AssetsMissingError, find
from tests.kubernetes.site import RealSite


@pytest.fixture(scope="session")
def assets() -> Assets:
    try:
        return find()
    except AssetsMissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def site(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSite]:
    site = RealSite(Path(tmp_path_factory.mktemp("real")), assets)
    site.start()
    try:
        yield site
    finally:
        site.stop()
