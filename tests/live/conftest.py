from datetime import UTC, datetime, timedelta

import pytest

from captfctl.cluster.live import LiveDoor
from captfctl.cluster.live_requests import Limits
from captfctl.serving import certificates
from tests.live.api import Api, kubeconfig

NOW = datetime.now(UTC) - timedelta(hours=1)


@pytest.fixture
def api():
    with Api() as api:
        yield api


@pytest.fixture(scope="session")
def authority():
    return certificates.authority("authority of tests", NOW, timedelta(days=1))


@pytest.fixture(scope="session")
def certificate(authority):
    return certificates.server(
        "tests",
        authority,
        NOW,
        timedelta(days=1),
        hosts=["localhost", "api.example.com"],
        addresses=["127.0.0.1"],
    )


@pytest.fixture
def secure_api(certificate, authority):
    """One that is reached by HTTPS: only there are credentials shown."""
    with Api(certificate, authority) as api:
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
