"""Kubeconfigs, accounts and credentials: which are used, which are refused, with what words."""

import json
import logging
import os
import subprocess
import sys

import pytest

from captfctl.cluster.credentials import Credentials
from captfctl.cluster.errors import Unauthorized, Unavailable
from captfctl.cluster.live import LiveDoor
from captfctl.cluster.live_access import Access, Target, in_cluster_access, kubeconfig_access
from captfctl.errors import InputError
from captfctl.model.resources import NAMESPACES
from tests.live.api import Answer, Stream, kubeconfig, status
from tests.live.proxies import RecordingProxy


@pytest.fixture
def api(secure_api):
    return secure_api


OBJECT = {"metadata": {"name": "a", "resourceVersion": "7"}}


def config(api, tmp_path, **fields):
    return kubeconfig(tmp_path / "config", api.url, **fields, **api.trust)


def refused(path, context=None, environ=None) -> InputError:
    with pytest.raises(InputError) as error:
        kubeconfig_access(path and str(path), context, environ or {}, 4)
    return error.value


def authorization(api, door):
    api.answer(OBJECT)
    door.get(NAMESPACES, "a")
    return api.seen[-1].headers.get("Authorization")


def test_a_file_that_does_not_exist_is_named(tmp_path):
    error = refused(tmp_path / "nothing")
    assert str(tmp_path / "nothing") in error.what
    assert "--kubeconfig" in error.do


def test_no_kubeconfig_anywhere_says_how_to_name_one(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    error = refused(None)
    assert "--kubeconfig" in error.do and "KUBECONFIG" in error.do


def test_a_file_that_is_not_yaml_is_refused_with_its_line(tmp_path):
    file = tmp_path / "config"
    file.write_text("apiVersion: v1\nclusters: [\nusers: }\n")
    error = refused(file)
    assert error.where == f"{file}:3"
    assert "not YAML" in error.why


@pytest.mark.parametrize("content", ["", "- a\n", "text\n", "clusters: 5\n", "contexts: [1]\n"])
def test_a_file_of_another_kind_is_refused_with_its_name(tmp_path, content):
    file = tmp_path / "config"
    file.write_text(content)
    assert str(file) in str(refused(file))


def test_a_file_that_is_not_text_is_refused(tmp_path):
    file = tmp_path / "config"
    file.write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in str(refused(file))


def test_a_directory_is_refused(tmp_path):
    assert str(tmp_path) in str(refused(tmp_path))


def test_an_unknown_context_is_refused_with_those_that_exist(tmp_path):
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1")
    error = refused(path, "elsewhere")
    assert '"elsewhere"' in error.what
    assert "test" in error.do


def test_a_file_without_a_current_context_asks_for_one(tmp_path):
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1")
    config = json.loads((tmp_path / "config").read_text())
    del config["current-context"]
    (tmp_path / "config").write_text(json.dumps(config))
    error = refused(path)
    assert "--context" in error.do and "test" in error.do
    assert kubeconfig_access(path, "test", {}, 4).server == "https://127.0.0.1:1"


def test_a_context_that_names_an_undefined_cluster_is_refused(tmp_path):
    kubeconfig(tmp_path / "config", "https://127.0.0.1:1")
    config = json.loads((tmp_path / "config").read_text())
    config["clusters"] = []
    (tmp_path / "config").write_text(json.dumps(config))
    assert '"here"' in refused(tmp_path / "config").what


def test_a_server_without_a_scheme_is_refused_with_its_cluster(tmp_path):
    error = refused(kubeconfig(tmp_path / "config", "localhost:6443"))
    assert "https://" in error.do
    assert '"here"' in error.where


def test_a_certificate_file_that_does_not_exist_is_named(tmp_path):
    path = kubeconfig(
        tmp_path / "config", "https://127.0.0.1:1", **{"certificate-authority": "/no/ca.crt"}
    )
    assert "/no/ca.crt" in refused(path).why


@pytest.mark.parametrize("data", ["%%%", "aGVsbG8="])
def test_certificate_data_that_is_none_is_refused(tmp_path, data):
    path = kubeconfig(
        tmp_path / "config", "https://127.0.0.1:1", **{"certificate-authority-data": data}
    )
    error = refused(path)
    assert "certificate" in error.what and "authority" in error.what
    assert '"here"' in error.where


def test_a_client_certificate_that_is_none_is_refused_without_quoting_it(tmp_path):
    user = {"client-certificate-data": "aGVsbG8=", "client-key-data": "c2VjcmV0"}
    error = refused(kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user=user))
    assert "client certificate" in error.what
    assert "secret" not in repr(vars(error))


def test_secrets_of_a_broken_kubeconfig_are_never_quoted(tmp_path):
    file = tmp_path / "config"
    file.write_text("users:\n- name: a\n  user: {token: top-s3cret\n")
    assert "top-s3cret" not in repr(vars(refused(file)))


def test_the_variable_names_the_file_when_no_flag_does(api, tmp_path):
    path = config(api, tmp_path)
    door = LiveDoor.from_kubeconfig(environ={"KUBECONFIG": path})
    assert authorization(api, door) == "Bearer t0ken"
    assert door.server == api.url
    assert path in door.who


def test_several_files_are_merged(api, tmp_path):
    first = kubeconfig(tmp_path / "one", api.url, context="one", **api.trust)
    other = kubeconfig(tmp_path / "two", api.url, context="two", **api.trust)
    door = LiveDoor.from_kubeconfig(environ={"KUBECONFIG": f"{first}:{other}"}, context="two")
    assert authorization(api, door) == "Bearer t0ken"


def test_the_current_context_of_the_first_file_that_has_one_counts(api, tmp_path):
    first = kubeconfig(tmp_path / "one", api.url, context="", **api.trust)
    second = kubeconfig(tmp_path / "two", api.url, context="two", **api.trust)
    third = kubeconfig(tmp_path / "three", "https://127.0.0.1:1", context="three")
    access = kubeconfig_access(None, None, {"KUBECONFIG": f"{first}:{second}:{third}"}, 1)
    assert 'context "two"' in access.who
    assert access.server == api.url


def test_one_file_is_named_by_the_option(tmp_path):
    path = kubeconfig(tmp_path / "a:b", "https://127.0.0.1:1")
    assert kubeconfig_access(path, None, {}, 1).server == "https://127.0.0.1:1"


def test_a_definition_given_twice_is_refused(tmp_path):
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1")
    config_ = json.loads((tmp_path / "config").read_text())
    config_["users"] *= 2
    (tmp_path / "config").write_text(json.dumps(config_))
    assert "twice" in refused(path).why


def test_a_value_of_the_wrong_type_is_refused_with_its_line_and_not_quoted(tmp_path):
    file = tmp_path / "config"
    file.write_text("users:\n- name: a\n  user:\n    token: 20261130\n")
    error = refused(file)
    assert error.where == f"{file}:4"
    assert "users[0].user.token" in error.why
    assert "20261130" not in str(error)


def test_a_name_or_password_in_a_servers_address_is_refused_and_not_quoted(tmp_path):
    error = refused(kubeconfig(tmp_path / "config", "https://ann:s3cret@127.0.0.1:1"))
    assert "name or a password" in error.what
    assert "s3cret" not in str(error)


def test_a_token_file_is_read_again_and_wins_over_a_token(api, tmp_path):
    token = tmp_path / "token"
    token.write_text("one\n")
    path = config(api, tmp_path, user={"token": "old", "tokenFile": "token"})
    access = kubeconfig_access(path, None, {}, 1)
    assert access.connection(0.0)[1]["Authorization"] == "Bearer one"
    token.write_text("two")
    assert access.connection(2.0)[1]["Authorization"] == "Bearer two"
    token.unlink()
    assert access.connection(4.0)[1]["Authorization"] == "Bearer two"


def test_who_is_impersonated_is_named_in_messages(api, tmp_path):
    user = {"token": "t", "as": "bob"}
    assert (
        '"bob", impersonated by user "ann"'
        in kubeconfig_access(config(api, tmp_path, user=user), None, {}, 1).who
    )


def test_reads_and_watches_go_through_a_socks_proxy(api, tmp_path):
    with RecordingProxy(api.port) as proxy:
        path = kubeconfig(
            tmp_path / "config",
            f"https://api.example.com:{api.port}",
            **api.trust,
            **{"proxy-url": f"socks5://us:pw@{proxy.address}"},
        )
        door = LiveDoor.from_kubeconfig(path, environ={})
        assert authorization(api, door) == "Bearer t0ken"
        stream = Stream()
        api.answers.append(stream)
        stream.end()
        with door.watch(NAMESPACES) as watch:
            assert list(watch) == []
        door.close()
        assert set(proxy.seen) == {f"socks api.example.com:{api.port} us:pw"}


def test_a_socks_proxy_that_is_not_there_is_one_clear_error(api, tmp_path):
    path = config(api, tmp_path, **{"proxy-url": "socks5://127.0.0.1:1"})
    door = LiveDoor.from_kubeconfig(path, environ={})
    with pytest.raises(
        Unavailable, match=r"through proxy socks5://127\.0\.0\.1:1 cannot be reached"
    ):
        door.get(NAMESPACES, "a")
    door.close()


def test_a_user_with_a_name_and_a_password_is_known_by_them(api, tmp_path):
    user = {"username": "ann", "password": "pw"}
    door = LiveDoor.from_kubeconfig(config(api, tmp_path, user=user), environ={})
    assert authorization(api, door) == "Basic YW5uOnB3"


def test_a_token_file_that_was_replaced_is_read_again_when_the_old_token_is_refused(api, tmp_path):
    token = tmp_path / "token"
    token.write_text("old")
    user = {"tokenFile": str(token)}
    door = LiveDoor.from_kubeconfig(config(api, tmp_path, user=user), environ={})
    assert authorization(api, door) == "Bearer old"
    token.write_text("new")
    api.answers += [status(401, "Unauthorized"), Answer(201, OBJECT)]
    door.patch(NAMESPACES, "a", "", {})
    assert api.seen[-1].headers["Authorization"] == "Bearer new"


def test_credentials_that_stay_refused_are_tried_twice_and_no_more(api, tmp_path):
    door = LiveDoor.from_kubeconfig(config(api, tmp_path), environ={})
    api.answers += [status(401, "Unauthorized")] * 5
    with pytest.raises(Unauthorized):
        door.get(NAMESPACES, "a")
    assert len(api.seen) == 2


def test_a_kubeconfig_that_vanished_meanwhile_means_that_nobody_knows_us(api, tmp_path):
    path = config(api, tmp_path)
    door = LiveDoor.from_kubeconfig(path, environ={})
    (tmp_path / "config").unlink()
    api.answers += [status(401, "Unauthorized")] * 2
    with pytest.raises(Unauthorized) as refused:
        door.get(NAMESPACES, "a")
    assert path in str(refused.value)


def plugin(tmp_path, program, *args):
    script = tmp_path / "plugin.py"
    script.write_text(program)
    version = "client.authentication.k8s.io/v1"
    return {
        "exec": {
            "apiVersion": version,
            "command": sys.executable,
            "args": [str(script), *args],
            "interactiveMode": "Never",
        }
    }


GIVES_TOKEN = """
import json
status = {"token": "from-plugin"}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                  "status": status}))
"""


def test_a_credential_plugin_is_run(api, tmp_path):
    user = plugin(tmp_path, GIVES_TOKEN)
    door = LiveDoor.from_kubeconfig(config(api, tmp_path, user=user), environ={})
    assert authorization(api, door) == "Bearer from-plugin"


FAILS = "import sys; sys.exit('session expired: run `cloud login`')"


@pytest.mark.parametrize("handlers", ["none", "some"])
def test_a_credential_plugin_that_fails_is_an_error_and_no_anonymous_request(
    tmp_path, handlers, monkeypatch
):
    if handlers == "none":
        monkeypatch.setattr(logging.getLogger(), "handlers", [])
    before = list(logging.getLogger().handlers)
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user=plugin(tmp_path, FAILS))
    error = refused(path)
    assert '"ann"' in error.where
    assert "session expired" in error.why
    assert logging.getLogger().handlers == before


def test_a_credential_plugin_that_is_missing_is_an_error(tmp_path):
    user = plugin(tmp_path, "")
    user["exec"]["command"] = "/no/plugin"
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user=user)
    assert "/no/plugin" in refused(path).why


class Pod:
    """What a pod has: variables and files."""

    def __init__(self, directory, api):
        self.directory = directory
        self.token, self.ca = directory / "token", directory / "ca.crt"
        self.token.write_text("pod-token")
        self.ca.write_bytes(api.authority)
        self.environ = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(api.port),
        }

    def access(self):
        return in_cluster_access(self.environ, 4, directory=self.directory)


def test_a_pod_is_known_by_its_service_accounts_token(api, tmp_path):
    access = Pod(tmp_path, api).access()
    _, headers, _ = access.connection(0.0)
    assert headers == {"Authorization": "Bearer pod-token"}
    assert access.server == f"https://127.0.0.1:{api.port}"


def test_a_pods_rotated_token_is_read_anew_on_renewal(api, tmp_path):
    pod = Pod(tmp_path, api)
    access = pod.access()
    pod.token.write_text("next-token")
    access.renew(0)
    assert access.connection(0.0)[1] == {"Authorization": "Bearer next-token"}


def test_whether_a_token_is_still_good_is_asked_once_a_second(api):
    tokens = ["a-token", "next-token"]
    credentials = Credentials(lambda: tokens.pop(0))
    access = Access(lambda: Target(api.url, "somebody", credentials), 4)
    for now in (5.0, 5.9):
        assert access.connection(now)[1] == {"Authorization": "a-token"}
    assert access.connection(6.1)[1] == {"Authorization": "next-token"}


@pytest.mark.parametrize("missing", ["token", "ca"])
def test_a_pod_without_its_files_is_refused(api, tmp_path, missing):
    pod = Pod(tmp_path, api)
    getattr(pod, missing).unlink()
    with pytest.raises(InputError, match="ServiceAccount"):
        pod.access()


def test_outside_of_a_pod_there_is_no_account(tmp_path):
    with pytest.raises(InputError):
        in_cluster_access({}, 4)


def test_several_threads_renew_once(api, tmp_path):
    pod = Pod(tmp_path, api)
    access = pod.access()
    access.renew(0)
    generation = access.connection(0.0)[2]
    access.renew(0)
    assert access.connection(0.0)[2] == generation == 1


def test_the_systems_authorities_are_not_loaded_where_the_kubeconfig_names_its_own(
    api, tmp_path, monkeypatch
):
    """They take longer than a request, and the server is none that they vouch for."""

    def load(*_):
        raise AssertionError("they are not needed")

    monkeypatch.setattr("ssl.SSLContext.load_default_certs", load)
    api.answer(OBJECT)

    found = LiveDoor.from_kubeconfig(config(api, tmp_path)).get(NAMESPACES, "a")

    assert found.metadata.name == "a"


def test_an_authority_is_of_no_account_where_nothing_is_encrypted(tmp_path):
    """As for kubectl."""
    data = {"certificate-authority-data": "bm90IGEgY2VydA=="}
    path = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", **data)
    assert kubeconfig_access(str(path), None, {}, 4).server == "http://127.0.0.1:1"


def test_importing_the_door_is_not_needed_for_the_command_line(tmp_path):
    """Only commands that talk to a server pay for the libraries that do."""
    program = "import captfctl.cli, captfctl.cluster, sys; print('kubernetes' in sys.modules)"
    env = {**os.environ, "HOME": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, env=env, check=True)
    assert out.stdout.strip() == b"False"
