"""The server's life: files, restarts, ports, the end of what is under way."""

import gc
import json
import socket
import ssl
import stat
import threading
import time
from datetime import timedelta
from http.client import HTTPSConnection

import pytest
from cryptography import x509

from captfctl.clock import SystemClock
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.apiserver.tls import ensure_certificates
from captfctl.embedded.store import EmbeddedStore
from captfctl.errors import EnvironmentFault
from tests.support.clock import START, eventually


@pytest.fixture
def store():
    made = EmbeddedStore.in_memory(SystemClock())
    yield made
    made.close()


@pytest.fixture
def start(store, tmp_path):
    running = []

    def begin(**options):
        settings = {"data_dir": tmp_path / "api", "clock": SystemClock()} | options
        server = ApiServer(store, **settings)
        server.start()
        running.append(server)
        return server

    yield begin
    for server in running:
        server.stop()


def connect(server, token=None):
    context = ssl.create_default_context(cafile=str(server.ca_path))
    connection = HTTPSConnection("127.0.0.1", server.port, context=context, timeout=20)
    return connection, {"Authorization": f"Bearer {token or server.token}"}


def status_of(server, token=None):
    connection, headers = connect(server, token)
    connection.request("GET", "/api/v1/namespaces", headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_everything_it_keeps_is_for_its_owner_only(start, tmp_path):
    server = start()
    for path in (tmp_path / "api").rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    assert server.token_path.read_text().strip() == server.token


def test_the_kubeconfig_is_complete(start):
    server = start()
    config = json.loads(server.kubeconfig_path.read_text())
    assert config["clusters"][0]["cluster"]["server"] == server.url
    assert config["users"][0]["user"]["token"] == server.token
    assert config["current-context"] == config["contexts"][0]["name"]


def test_it_listens_on_loopback_only(start):
    server = start()
    assert server.url == f"https://127.0.0.1:{server.port}"
    others = {
        info[4][0]
        for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        if not info[4][0].startswith("127.")
    }
    for address in others:
        with pytest.raises(OSError):
            socket.create_connection((address, server.port), timeout=2)


def test_a_restart_keeps_token_and_authority(start):
    server = start()
    token, authority = server.token, server.ca_path.read_bytes()
    server.stop()
    again = start()
    assert again.token == token
    assert again.ca_path.read_bytes() == authority
    assert status_of(again) == 200


def test_tokens_of_service_accounts_outlive_a_restart(start, store):
    server = start()
    accounts = store.registry.find("", "v1", "serviceaccounts")
    store.create(accounts, {"metadata": {"name": "robot"}}, "default")
    answer = store.create_subresource(accounts, "robot", "default", "token", {})
    token = answer["status"]["token"]
    assert status_of(server, token) == 200
    server.stop()
    assert status_of(start(), token) == 200


def test_a_port_in_use_is_named(start):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(EnvironmentFault) as refused:
            start(ports=(port,))
    assert str(port) in refused.value.what
    assert "another process" in refused.value.why
    assert "--port" in refused.value.do
    assert status_of(start(ports=(port,))) == 200


def test_the_next_of_several_ports_is_taken_when_one_is_in_use(start):
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = start(ports=(other.getsockname()[1], 0))
    assert status_of(server) == 200


def test_a_directory_that_cannot_be_used_is_named(start, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault) as refused:
        start(data_dir=tmp_path / "file" / "api")
    assert str(tmp_path / "file") in refused.value.where


def test_stopping_ends_watches_at_once(start):
    server = start()
    connection, headers = connect(server)
    connection.request("GET", "/api/v1/pods?watch=1", headers=headers)
    answer = connection.getresponse()
    ended = threading.Event()

    def read():
        answer.read()
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    begin = time.monotonic()
    server.stop()
    assert ended.wait(10)
    assert time.monotonic() - begin < 8
    server.stop()
    connection.close()


def test_a_client_that_goes_away_ends_its_watch(start, store, monkeypatch):
    opened = []
    watch = EmbeddedStore.watch

    def remember(*arguments, **options):
        opened.append(watch(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(EmbeddedStore, "watch", remember)
    connection, headers = connect(start())
    connection.request("GET", "/api/v1/pods?watch=1", headers=headers)
    answer = connection.getresponse()
    assert not opened[0].ended
    answer.close()
    connection.close()
    eventually(lambda: opened[0].ended, "the end of the watch")


def test_stopping_leaves_no_connection_behind(start):
    server = start()
    connection, headers = connect(server)
    connection.request("GET", "/api/v1/pods", headers=headers)
    connection.getresponse().read()  # kept open by the client
    server.stop()
    gc.collect()  # an unclosed connection would warn now, and warnings are errors
    connection.close()


def test_closing_the_store_ends_watches(start, store):
    server = start()
    connection, headers = connect(server)
    connection.request("GET", "/api/v1/pods?watch=1", headers=headers)
    answer = connection.getresponse()
    store.close()
    assert answer.read() is not None
    connection.close()


def names(certificate):
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = [str(address) for address in found.get_values_for_type(x509.IPAddress)]
    return found.get_values_for_type(x509.DNSName) + addresses


def load(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_certificates_are_used_again_while_valid_and_renewed_in_time(tmp_path):
    first = ensure_certificates(tmp_path, START)
    server, authority = first.server.read_bytes(), first.authority.read_bytes()
    assert {"localhost", "127.0.0.1", "::1"} <= set(names(load(first.server)))
    ensure_certificates(tmp_path, START + timedelta(days=300))
    assert first.server.read_bytes() == server
    ensure_certificates(tmp_path, START + timedelta(days=340))
    assert first.server.read_bytes() != server
    assert first.authority.read_bytes() == authority
    ensure_certificates(tmp_path, START + timedelta(days=3640))
    assert first.authority.read_bytes() != authority
    load(first.server).verify_directly_issued_by(load(first.authority))


def test_damaged_certificates_are_made_anew(tmp_path):
    first = ensure_certificates(tmp_path, START)
    first.server_key.write_text("nonsense")
    first.authority.write_text("nonsense")
    ensure_certificates(tmp_path, START)
    load(first.server).verify_directly_issued_by(load(first.authority))


def test_the_first_port_that_can_be_had_is_taken(start):
    with socket.socket() as taken, socket.socket() as probe:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
        probe.close()
        server = start(ports=(taken.getsockname()[1], free, 0))

    assert server.port == free


def test_stopping_leaves_no_connection_behind_that_only_the_server_closed(start):
    server = start()
    context = ssl.create_default_context(cafile=str(server.ca_path))
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        assert client.makefile("rb").read().endswith(b"ok")  # and does not end its TLS session
        server.stop()
        gc.collect()
