import pytest

from captfctl.cluster.live import LiveDoor
from captfctl.cluster.live_requests import Limits
from tests.live.api import Api, kubeconfig


@pytest.fixture
def api():
    with Api() as api:
        yield api


@pytest.fixture
def connect(tmp_path):
    """Doors to a server, closed at the end."""
    doors = []

    def connect(server, **options):
        path = kubeconfig(tmp_path / f"config-{len(doors)}", server)
        options = {"limits": Limits(connect=5, read=10, silence=10), **options}
        doors.append(LiveDoor.from_kubeconfig(path, environ={}, **options))
        return doors[-1]

    yield connect
    for door in doors:
        door.close()


@pytest.fixture
def door(api, connect):
    return connect(api.url)
