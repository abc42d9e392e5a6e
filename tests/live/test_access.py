"""Kubeconfigs, accounts and credentials: which are used, which are refused, with what words."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import certifi
import pytest
from kubernetes.client import Configuration

from captfctl.cluster.errors import Unauthorized
from captfctl.cluster.live import LiveDoor
from captfctl.cluster.live_access import (
    Access,
    Loaded,
    in_cluster_access,
    kubeconfig_access,
)
from captfctl.errors import InputError
from captfctl.model.resources import NAMESPACES
from tests.live.api import Answer, kubeconfig, status

OBJECT = {"metadata": {"name": "a", "resourceVersion": "7"}}


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
    assert "here" in refused(tmp_path / "config").why


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
    assert "certificate authority" in refused(path).what


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
    path = kubeconfig(tmp_path / "config", api.url)
    door = LiveDoor.from_kubeconfig(environ={"KUBECONFIG": path})
    assert authorization(api, door) == "Bearer t0ken"
    assert door.server == api.url
    assert path in door.who


def test_several_files_are_merged(api, tmp_path):
    first = kubeconfig(tmp_path / "one", api.url, context="one")
    other = kubeconfig(tmp_path / "two", api.url, context="two")
    door = LiveDoor.from_kubeconfig(environ={"KUBECONFIG": f"{first}:{other}"}, context="two")
    assert authorization(api, door) == "Bearer t0ken"


def test_a_user_with_a_name_and_a_password_is_known_by_them(api, tmp_path):
    user = {"username": "ann", "password": "pw"}
    door = LiveDoor.from_kubeconfig(kubeconfig(tmp_path / "config", api.url, user=user), environ={})
    assert authorization(api, door) == "Basic YW5uOnB3"


def test_a_token_file_that_was_replaced_is_read_again_when_the_old_token_is_refused(api, tmp_path):
    token = tmp_path / "token"
    token.write_text("old")
    user = {"tokenFile": str(token)}
    door = LiveDoor.from_kubeconfig(kubeconfig(tmp_path / "config", api.url, user=user), environ={})
    assert authorization(api, door) == "Bearer old"
    token.write_text("new")
    api.answers += [status(401, "Unauthorized"), Answer(201, OBJECT)]
    door.patch(NAMESPACES, "a", "", {})
    assert api.seen[-1].headers["Authorization"] == "Bearer new"


def test_credentials_that_stay_refused_are_tried_twice_and_no_more(api, tmp_path):
    door = LiveDoor.from_kubeconfig(kubeconfig(tmp_path / "config", api.url), environ={})
    api.answers += [status(401, "Unauthorized")] * 5
    with pytest.raises(Unauthorized):
        door.get(NAMESPACES, "a")
    assert len(api.seen) == 2


def test_a_kubeconfig_that_vanished_meanwhile_means_that_nobody_knows_us(api, tmp_path):
    path = kubeconfig(tmp_path / "config", api.url)
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
    door = LiveDoor.from_kubeconfig(kubeconfig(tmp_path / "config", api.url, user=user), environ={})
    assert authorization(api, door) == "Bearer from-plugin"


FAILS = "import sys; sys.exit('session expired: run `cloud login`')"


@pytest.mark.parametrize("handlers", ["none", "some"])
def test_a_credential_plugin_that_fails_is_an_error_and_no_anonymous_request(
    tmp_path, handlers, monkeypatch
):
    if handlers == "none":
        monkeypatch.setattr(logging.getLogger(), "handlers", [])
    before = list(logging.getLogger().handlers)
    path = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", user=plugin(tmp_path, FAILS))
    error = refused(path)
    assert '"ann"' in error.where
    assert "session expired" in error.why
    assert logging.getLogger().handlers == before


def test_a_credential_plugin_that_is_missing_is_an_error(tmp_path):
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/plugin"}}
    path = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", user=user)
    assert "/no/plugin" in refused(path).why


class Pod:
    """What a pod has: variables and files."""

    def __init__(self, tmp_path, api):
        self.token, self.ca = tmp_path / "token", tmp_path / "ca.crt"
        self.token.write_text("pod-token")
        self.ca.write_bytes(Path(certifi.where()).read_bytes())
        self.environ = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(api.port),
        }

    def access(self):
        return in_cluster_access(self.environ, 4, token_file=str(self.token), ca_file=str(self.ca))


def test_a_pod_is_known_by_its_service_accounts_token(api, tmp_path):
    access = Pod(tmp_path, api).access()
    _, headers, _ = access.connection(0.0)
    assert headers == {"Authorization": "bearer pod-token"}
    assert access.server == f"https://127.0.0.1:{api.port}"


def test_a_pods_rotated_token_is_read_anew_on_renewal(api, tmp_path):
    pod = Pod(tmp_path, api)
    access = pod.access()
    pod.token.write_text("next-token")
    access.renew(0)
    assert access.connection(0.0)[1] == {"Authorization": "bearer next-token"}


def test_whether_a_token_is_still_good_is_asked_once_a_second(api):
    asked = []
    configuration = Configuration(host=f"http://127.0.0.1:{api.port}")
    configuration.refresh_api_key_hook = asked.append
    configuration.api_key = {"authorization": "a-token"}
    access = Access(lambda: Loaded(configuration, "somebody"), 4)
    for now in (5.0, 5.9):
        assert access.connection(now)[1] == {"Authorization": "a-token"}
    assert len(asked) == 1
    configuration.api_key = {"authorization": "next-token"}
    assert access.connection(6.1)[1] == {"Authorization": "next-token"}
    assert len(asked) == 2


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


def test_importing_the_door_is_not_needed_for_the_command_line(tmp_path):
    """Only commands that talk to a server pay for the libraries that do."""
    program = "import captfctl.cli, captfctl.cluster, sys; print('kubernetes' in sys.modules)"
    env = {**os.environ, "HOME": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, env=env, check=True)
    assert out.stdout.strip() == b"False"
