"""Generated kubeconfigs: the same cluster, the same headers, the same refusals as kubectl."""

import json
import os
import random
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from captfctl.clock import SystemClock
from captfctl.cluster.kubeconfig import choose, files_named
from captfctl.cluster.live import LiveDoor
from captfctl.cluster.live_access import kubeconfig_access
from captfctl.cluster.live_requests import Limits, Requests
from captfctl.errors import CaptfError, InputError
from captfctl.model.resources import NAMESPACES
from tests.live.api import Stream
from tests.live.proxies import RecordingProxy

pytestmark = pytest.mark.kubectl


def kubectl(*arguments, **environ):
    """Its output; None when it refuses."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not on PATH")
    environ = {"PATH": os.environ["PATH"], "HOME": "/nowhere", **environ}
    done = subprocess.run(
        [program, *arguments], env=environ, capture_output=True, stdin=subprocess.DEVNULL
    )
    return done.stdout.decode() if done.returncode == 0 else None


def merged_by_kubectl(environ):
    return json.loads(kubectl("config", "view", "--raw", "-o", "json", **environ))


def generated_files(chance, directory):
    """Files that define some of the same names, in several folders, some of them missing."""
    names = ["a", "b", "c", "d"]
    paths = []
    for number in range(chance.randint(1, 4)):
        path = directory / f"folder{number}" / "config"
        path.parent.mkdir(exist_ok=True)
        paths.append(str(path))
        if chance.random() < 0.2:
            continue
        config = {"apiVersion": "v1", "kind": "Config"}
        if chance.random() < 0.7:
            config["current-context"] = chance.choice(["", *names])
        for one, section in (("cluster", "clusters"), ("user", "users"), ("context", "contexts")):
            found = [name for name in names if chance.random() < 0.6]
            config[section] = [
                {"name": name, one: DEFINITIONS[one](chance, name, number)} for name in found
            ]
            if chance.random() < 0.1:
                config[section] = None
        path.write_text(WRITERS[chance.randrange(len(WRITERS))](config))
    return paths


DEFINITIONS = {
    "cluster": lambda chance, name, number: {
        "server": f"https://{name}{number}.example.com:6443{chance.choice(['', '/', '/prefix/'])}",
        "insecure-skip-tls-verify": chance.random() < 0.5,
        "certificate-authority": "",
    },
    "user": lambda chance, name, number: chance.choice(
        [
            {"token": f"{name}{number}", "client-certificate": ""},
            {"token": "", "tokenFile": chance.choice(["token", "../token", "/token"])},
            {"client-certificate": "cert.pem", "client-key": "sub/key.pem", "token": None},
            {"username": name, "password": ""},
            {"as": name, "as-groups": [f"g{number}", "h"], "as-user-extra": {"k": ["v"]}},
        ]
    ),
    "context": lambda chance, name, number: {
        "cluster": chance.choice("abcd"),
        "user": chance.choice(["a", "b", "c", "d", ""]),
        "namespace": f"n{number}",
    },
}
WRITERS = (
    json.dumps,
    lambda config: json.dumps(config, indent="\t"),
    lambda config: f"# a comment\n---\n{json.dumps(config)}\n",
)


@settings(max_examples=10, phases=(Phase.generate,))
@given(st.integers(0, 2**32))
def test_files_are_merged_as_by_kubectl(tmp_path_factory, seed):
    paths = generated_files(random.Random(seed), tmp_path_factory.mktemp("configs"))
    environ = {"KUBECONFIG": f":{os.pathsep.join([*paths, paths[0]])}:"}
    theirs = merged_by_kubectl(environ)
    files = files_named(None, environ)
    clusters = {one["name"]: one["cluster"] for one in theirs["clusters"] or ()}
    users = {one["name"]: one["user"] for one in theirs["users"] or ()}
    contexts = {one["name"]: one["context"] for one in theirs["contexts"] or ()}
    for wanted in (None, *contexts):
        name = wanted or theirs["current-context"]
        context = contexts.get(name)
        if context is None or context["cluster"] not in clusters:
            with pytest.raises(InputError):
                choose(files, wanted)
            continue
        mine = choose(files, wanted)
        assert mine.context == name
        assert mine.cluster.server == clusters[context["cluster"]]["server"]
        user = users.get(context["user"], {})
        assert mine.user.token == user.get("token", "")
        assert mine.user.username == user.get("username", "")
        assert mine.user.impersonate == user.get("as", "")
        assert mine.user.impersonate_groups == user.get("as-groups", [])
        for field, path in (
            ("tokenFile", mine.user.token_file),
            ("client-key", mine.user.client_key),
        ):
            given_path = user.get(field, "")
            base = Path(mine.user_file).parent
            assert path == (str(base / given_path) if given_path else "")


def users(tmp_path):
    """Users by what is particular about them."""
    full, empty = tmp_path / "token", tmp_path / "empty"
    full.write_text("from-file\n")
    empty.write_text("\n")
    plugin = tmp_path / "plugin"
    status = {"token": "from-plugin"}
    answer = {"apiVersion": EXEC, "kind": "ExecCredential", "status": status}
    plugin.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
    plugin.chmod(0o700)
    run = {"apiVersion": EXEC, "command": str(plugin), "interactiveMode": "Never"}
    return {
        "a token": {"token": "t0ken"},
        "a token file": {"tokenFile": str(full)},
        "a relative token file": {"tokenFile": "token"},
        "a token and a token file": {"token": "t0ken", "tokenFile": str(full)},
        "a token and an empty token file": {"token": "t0ken", "tokenFile": str(empty)},
        "a token and a missing token file": {"token": "t0ken", "tokenFile": "/no/token"},
        "a missing token file": {"tokenFile": "/no/token"},
        "empty texts": {
            "token": "t0ken",
            "tokenFile": "",
            "client-certificate": "",
            "client-key": "",
            "username": "",
            "as": "",
            "as-groups": [],
        },
        "a name and a password": {"username": "ann", "password": "p:w"},
        "a name only": {"username": "ann"},
        "a password only": {"password": "pw"},
        "nothing": {},
        "a token and a password": {"token": "t0ken", "username": "ann", "password": "pw"},
        "a plugin": {"exec": run},
        "a plugin and a token": {"exec": run, "token": "t0ken"},
        "a plugin beside the file": {"exec": {**run, "command": "./plugin"}},
        "a plugin without a mode": {"exec": {**run, "interactiveMode": ""}},
        "a plugin without a command": {"exec": {**run, "command": ""}},
        "impersonation": {"token": "t0ken", "as": "bob"},
        "impersonation of groups": {
            "token": "t0ken",
            "as": "bob",
            "as-uid": "u-1",
            "as-groups": ["one", "two, three", "one"],
            "as-user-extra": {"Reason": ["a", "b"], "example.com/what%": ["c"]},
        },
        "impersonation without credentials": {"as": "system:serviceaccount:ns:sa"},
        "groups of nobody": {"token": "t0ken", "as-groups": ["one"]},
        "a number for a token": {"token": 123},
        "a certificate without a key": {"client-certificate-data": "aGVsbG8="},
        "a key without a certificate": {"token": "t0ken", "client-key-data": "aGVsbG8="},
        "a certificate in two ways": {
            "client-certificate-data": "aGVsbG8=",
            "client-certificate": str(full),
            "client-key-data": "aGVsbG8=",
        },
        "unknown fields": {"token": "t0ken", "later": {"x": 1}},
    }


EXEC = "client.authentication.k8s.io/v1"
SHOWN = ("authorization", "impersonate")


def shown(seen):
    """The headers that say who asks."""
    lines = sorted((name.lower(), value) for name, value in seen.lines)
    return [line for line in lines if line[0].startswith(SHOWN)]


def slug(name):
    return name.replace(" ", "-").replace(":", "-")


def config_of(directory, api, name, user, server=None, **cluster):
    cluster = {"server": server or api.url, **api.trust, **cluster}
    config = {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    if user is None:
        config["users"] = []
    path = directory / f"{slug(name)}.json"
    path.write_text(json.dumps(config, indent="\t"))
    return str(path)


def asked_by_kubectl(configs, **environ):
    with ThreadPoolExecutor(3) as threads:
        return dict(
            threads.map(
                lambda name: (
                    name,
                    kubectl("get", f"--raw=/{slug(name)}", KUBECONFIG=configs[name], **environ),
                ),
                configs,
            )
        )


def ask(name, path, **environ):
    """Whether an answer came."""
    try:
        access = kubeconfig_access(None, None, {"KUBECONFIG": path, **environ}, 2)
    except InputError:
        return False
    requests = Requests(access, Limits(connect=5, read=5), SystemClock())
    try:
        requests.send("GET", f"/{slug(name)}")
    except CaptfError:
        return False
    finally:
        requests.close()
    return True


def compared(api, configs, *, before_ours=lambda: None, **environ):
    """What each request showed, by name: asked by kubectl, and by us; None where none came."""
    api.default = {}
    answers = asked_by_kubectl(configs, **environ)
    theirs = by_name(api, configs)
    for name, answer in answers.items():
        assert (answer is not None) == (theirs[name] is not None), name
    api.seen.clear()
    before_ours()
    for name, path in configs.items():
        ask(name, path, **environ)
    return theirs, by_name(api, configs)


def by_name(api, configs):
    seen = {one.path.strip("/"): shown(one) for one in api.seen}
    return {name: seen.get(slug(name)) for name in configs}


def test_users_are_known_as_by_kubectl(secure_api, tmp_path):
    configs = {
        name: config_of(tmp_path, secure_api, name, user) for name, user in users(tmp_path).items()
    }
    theirs, mine = compared(secure_api, configs)
    assert mine == theirs
    assert sum(one is not None for one in theirs.values()) > 12


def test_nothing_but_the_impersonation_is_shown_where_anybody_can_listen(api, tmp_path):
    known = users(tmp_path)
    names = ("a token", "a name and a password", "a plugin", "impersonation of groups")
    configs = {name: config_of(tmp_path, api, name, known[name]) for name in names}
    theirs, mine = compared(api, configs)
    assert mine == theirs
    assert mine["a token"] == []


def test_a_user_that_is_not_defined_is_refused(secure_api, tmp_path):
    configs = {"no user": config_of(tmp_path, secure_api, "no user", None)}
    theirs, mine = compared(secure_api, configs)
    assert mine == theirs


def test_impersonation_is_part_of_watches_too(secure_api, tmp_path):
    user = users(tmp_path)["impersonation of groups"]
    path = config_of(tmp_path, secure_api, "watch", user)
    stream = Stream()
    secure_api.answers.append(stream)
    stream.end()
    door = LiveDoor.from_kubeconfig(path, environ={})
    with door.watch(NAMESPACES) as watch:
        list(watch)
    secure_api.default = {"metadata": {"name": "a", "resourceVersion": "1"}}
    door.get(NAMESPACES, "a")
    door.close()
    watched, got = secure_api.seen
    assert shown(watched) == shown(got)
    assert [value for name, value in shown(got) if name == "impersonate-group"] == [
        "one",
        "one",
        "two, three",
    ]


PROXIES = {
    "an http proxy": "http://{}",
    "credentials": "http://us%40er:p%3Aw@{}",
    "a socks proxy": "socks5://{}",
    "credentials of a socks proxy": "socks5://us%40er:pw@{}",
    "an unknown kind of proxy": "ftp://{}",
    "no scheme": "{}",
}


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_proxies_are_used_as_by_kubectl(request, tmp_path, scheme):
    api = request.getfixturevalue("secure_api" if scheme == "https" else "api")
    with RecordingProxy(api.port) as proxy:
        server = f"{scheme}://api.example.com:{api.port}"
        user = {"token": "t0ken", "as": "bob", "as-groups": ["one", "two"]}
        configs = {
            name: config_of(
                tmp_path, api, name, user, server, **{"proxy-url": url.format(proxy.address)}
            )
            for name, url in PROXIES.items()
        }
        theirs, mine = compared(api, configs, before_ours=proxy.forget)
        assert mine == theirs
        assert set(proxy.seen) == {one for one in proxy.forgotten if "/version" not in one}
        assert len(proxy.seen) == 4


def test_the_proxy_of_the_environment_is_used_as_by_kubectl(api, tmp_path):
    """By HTTP, because then the proxy sees of which case a request is."""
    domain, address = f"api.example.com:{api.port}", f"0.0.0.0:{api.port}"
    exceptions = {
        "none": ("", domain, address, f"127.0.0.1:{api.port}", f"localhost:{api.port}"),
        "all": ("*", address),
        "the domain": ("example.com", domain),
        "below a domain": (".example.com", domain),
        "stars": ("*.example.com", domain),
        "only below the host": (".api.example.com", domain),
        "the host in capitals": (" API.example.com ,other", domain),
        "another port": (f"api.example.com:{api.port + 1}", domain),
        "the port of a domain": (f"api.example.com:{api.port}", domain),
        "an address": ("0.0.0.0", address),
        "an address and a port": (f"0.0.0.0:{api.port}", address),
        "an address and another port": ("0.0.0.0:1", address),
        "a range": ("0.0.0.0/24", address),
        "another range": ("10.0.0.0/8", address),
        "an end that is no domain": ("ample.com,0.0,.0", domain, address),
    }
    api.default = {}
    expected = set()
    with RecordingProxy(api.port) as proxy:
        environ = {"HTTP_PROXY": f"u:p@{proxy.address}", "HTTPS_PROXY": "http://127.0.0.1:1"}

        def one(case):
            name, no_proxy, server = case
            part = slug(f"{name} {server}")
            path = config_of(tmp_path, api, part, {"token": "t"}, f"http://{server}")
            with_exceptions = {**environ, "NO_PROXY": no_proxy, "KUBECONFIG": path}
            access = kubeconfig_access(None, None, with_exceptions, 1)
            if access.connection(0.0)[0].direct is None:
                expected.add(part)
            access.close()
            kubectl("get", f"--raw=/{part}", **with_exceptions)

        cases = [(name, entry, one) for name, (entry, *all_) in exceptions.items() for one in all_]
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(one, cases))
        seen = {urlsplit(found.split()[1]).path.strip("/") for found in proxy.seen}
    assert seen - {"version"} == expected
    assert 5 < len(expected) < len(cases) - 5


def test_credentials_of_a_proxy_are_in_no_message(secure_api, tmp_path):
    for url in ("http://us:s3cret@127.0.0.1:1", "socks5://us:s3cret@127.0.0.1:1"):
        path = config_of(tmp_path, secure_api, "x", {"token": "t"}, **{"proxy-url": url})
        access = kubeconfig_access(path, None, {}, 2)
        requests = Requests(access, Limits(connect=5, read=5), SystemClock())
        with pytest.raises(CaptfError) as refused:
            requests.send("GET", "/x")
        requests.close()
        told = repr(vars(refused.value)) + str(refused.value) + repr(refused.value.__cause__)
        assert "s3cret" not in told
        assert "127.0.0.1:1" in str(refused.value)


@pytest.mark.parametrize("url", ["ftp://us:s3cret@h:1", "us:s3cret@h:1", "http://us:s3cret@", "::"])
def test_a_proxy_address_that_is_none_is_refused_without_its_credentials(tmp_path, api, url):
    path = config_of(tmp_path, api, "x", {"token": "t"}, **{"proxy-url": url})
    with pytest.raises(InputError, match="proxy-url") as refused:
        kubeconfig_access(path, None, {}, 2)
    assert "s3cret" not in repr(vars(refused.value))
