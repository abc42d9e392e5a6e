#!/usr/bin/env python3
"""A rehearsal of terraform and tofu, for machines that have neither: it acts the part of a run.

It takes the commands the runner gives, keeps state and lock where the runtimes' `kubernetes`
backend keeps them, and says in every line that it is a rehearsal. It evaluates nothing: of a module
it sees the resource blocks by their first lines, each "changes" when any variable does, and the
outputs of the module contract get made-up values. Nothing real is ever created.
"""

import base64
import gzip
import hashlib
import json
import os
import re
import signal
import ssl
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

MARK = "REHEARSAL"
VERSION = "1.9.0"  # the format of the state it writes
RESOURCE = re.compile(r'^resource "([a-z0-9_]+)" "([A-Za-z0-9_-]+)"', re.MULTILINE)
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PROVIDER = 'provider["terraform.io/builtin/terraform"]'


class RehearsalError(Exception):
    """What a runtime would report as an error."""


class Interrupted(Exception):
    """SIGTERM arrived."""


class Api:
    """The few requests of the backend."""

    def __init__(self, settings: dict[str, str]) -> None:
        if "config_path" in settings:
            # The node agent writes its kubeconfig as JSON, which is YAML too.
            config = json.loads(Path(settings["config_path"]).read_text())
            cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
            self._server, authority = cluster["server"], cluster["certificate-authority"]
            self._token = user.get("token") or Path(user["tokenFile"]).read_text().strip()
        else:
            host, port = (os.environ[f"KUBERNETES_SERVICE_{part}"] for part in ("HOST", "PORT"))
            self._server, authority = f"https://{host}:{port}", str(ACCOUNT / "ca.crt")
            self._token = (ACCOUNT / "token").read_text().strip()
        self._context = ssl.create_default_context(cafile=authority)

    def get(self, path: str) -> dict[str, Any] | None:
        """An object; None when there is none."""
        try:
            return self._call("GET", path, None)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def put(self, collection: str, document: dict[str, Any]) -> None:
        """Create an object, or replace it when it was read before."""
        metadata = document["metadata"]
        if "resourceVersion" in metadata:
            self._call("PUT", f"{collection}/{metadata['name']}", document)
        else:
            self._call("POST", collection, document)

    def _call(self, method: str, path: str, document: dict[str, Any] | None) -> dict[str, Any]:
        request = urllib.request.Request(
            self._server + path,
            json.dumps(document).encode() if document is not None else None,
            {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:
            return json.load(answer)


class Backend:
    """State and lock of one object."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._api = Api(settings)
        namespace = settings.get("namespace", "default")
        suffix = settings["secret_suffix"]
        self._secrets = f"/api/v1/namespaces/{namespace}/secrets"
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._secret, self._lease = f"tfstate-default-{suffix}", f"lock-tfstate-default-{suffix}"

    def read(self) -> dict[str, Any]:
        """The state; an empty one when there is none yet."""
        secret = self._api.get(f"{self._secrets}/{self._secret}")
        if secret is None:
            lineage = str(uuid.uuid4())
            return {"version": 4, "serial": 0, "lineage": lineage, "outputs": {}, "resources": []}
        return json.loads(gzip.decompress(base64.b64decode(secret["data"]["tfstate"])))

    def write(self, state: dict[str, Any]) -> None:
        """Store the state."""
        secret = self._api.get(f"{self._secrets}/{self._secret}") or {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._secret, "labels": self._labels()},
        }
        secret["metadata"].setdefault("annotations", {})["encoding"] = "gzip"
        packed = gzip.compress(json.dumps({**state, "terraform_version": VERSION}).encode())
        secret["data"] = {"tfstate": base64.b64encode(packed).decode()}
        self._api.put(self._secrets, secret)

    def lock(self, operation: str, patience: float) -> None:
        """Take the lock within `patience` seconds."""
        deadline = time.monotonic() + patience
        while not self._try_lock(operation):
            if time.monotonic() >= deadline:
                raise RehearsalError("Error acquiring the state lock")
            time.sleep(min(1.0, max(deadline - time.monotonic(), 0.01)))

    def unlock(self, holder: str | None = None) -> None:
        """Let go of the lock; with `holder` only when that is its ID."""
        lease = self._api.get(f"{self._leases}/{self._lease}")
        current = (lease or {}).get("spec", {}).get("holderIdentity")
        if lease is None or not current:
            if holder is not None:
                raise RehearsalError("Failed to unlock state: state is already unlocked")
            return
        if holder not in (None, current):
            text = f'Failed to unlock state: lock id "{holder}" does not match existing lock'
            raise RehearsalError(text)
        lease["spec"].pop("holderIdentity")
        lease["metadata"].get("annotations", {}).pop("app.terraform.io/lock-info", None)
        self._api.put(self._leases, lease)

    def _try_lock(self, operation: str) -> bool:
        lease = self._api.get(f"{self._leases}/{self._lease}") or {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._lease, "labels": self._labels()},
        }
        if lease.get("spec", {}).get("holderIdentity"):
            return False
        identity = str(uuid.uuid4())
        info = {"ID": identity, "Operation": operation, "Who": f"rehearsal@{os.uname().nodename}"}
        info |= {"Version": VERSION, "Created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        lease["spec"] = {**lease.get("spec", {}), "holderIdentity": identity}
        notes = lease["metadata"].setdefault("annotations", {})
        notes["app.terraform.io/lock-info"] = json.dumps(info)
        try:
            self._api.put(self._leases, lease)
        except urllib.error.HTTPError as error:
            if error.code == 409:
                return False
            raise
        return True

    def _labels(self) -> dict[str, str]:
        given = self._settings.get("labels", "{}").replace('"="', '":"')
        return {
            **json.loads(given),
            "tfstate": "true",
            "tfstateSecretSuffix": self._settings["secret_suffix"],
            "tfstateWorkspace": "default",
            "app.kubernetes.io/managed-by": "terraform",
        }


class Module:
    """What the rehearsal sees of the root module and the module it calls."""

    def __init__(self) -> None:
        root = json.loads(Path("main.tf.json").read_text())
        called = root.get("module", {}).get("role", {}).get("source", "")
        self.output_names = list(root.get("output", {}))
        self.resources: list[tuple[str, str]] = []
        for file in sorted(Path(called).glob("*.tf")) if called else []:
            self.resources += RESOURCE.findall(file.read_text())
        variables = Path("terraform.tfvars.json")
        self.variables = json.loads(variables.read_text()) if variables.exists() else {}
        self.digest = hashlib.sha256(
            json.dumps(self.variables, sort_keys=True).encode()
        ).hexdigest()

    def outputs(self) -> dict[str, Any]:
        """Made-up values of the module contract's outputs."""
        name = self.variables.get("captf_cluster", {}).get("name", "cluster")
        endpoint = {"host": f"{name}-rehearsal.example.com", "port": 6443}
        known = {
            "control_plane_endpoint": (endpoint, ["object", {"host": "string", "port": "number"}]),
            "failure_domains": ([], ["tuple", []]),
            "exports": ({}, ["object", {}]),
        }
        found = {name: known.get(name, (None, "dynamic")) for name in self.output_names}
        return {
            name: {"value": value, "type": kind, "sensitive": True}
            for name, (value, kind) in found.items()
        }


def address(kind: str, name: str) -> str:
    return f"module.role.{kind}.{name}"


def changes(state: dict[str, Any], module: Module, destroying: bool) -> list[dict[str, Any]]:
    """What would be done, as `show -json` tells it."""
    found = []
    present = {(item["type"], item["name"]): item for item in state["resources"]}
    wanted = [] if destroying else module.resources
    for key in wanted:
        before = present[key]["instances"][0]["attributes"] if key in present else None
        if before is None or before["input"] != module.digest:
            after = {**(before or {}), "input": module.digest}
            actions = ["create"] if before is None else ["update"]
            found.append(_change(key, actions, before, after))
    gone = [key for key in present if key not in wanted]
    attributes = {key: item["instances"][0]["attributes"] for key, item in present.items()}
    return found + [_change(key, ["delete"], attributes[key], None) for key in gone]


def _change(
    key: tuple[str, str], actions: list[str], before: object, after: object
) -> dict[str, Any]:
    change = {"actions": actions, "before": before, "after": after, "after_unknown": {}}
    return {"address": address(*key), "type": key[0], "name": key[1], "change": change}


class Rehearsal:
    """One command."""

    def __init__(self, arguments: list[str]) -> None:
        self._command, *self._arguments = arguments
        self._settings_file = Path(os.environ.get("TF_DATA_DIR", ".terraform")) / "rehearsal.json"
        self._json = "-json" in arguments

    def run(self) -> int:
        name = f"_{self._command.replace('-', '_')}"
        if self._command == "state":
            name = f"_state_{self._arguments[0]}"
        action = getattr(self, name, None)
        if action is None:
            raise RehearsalError(f"unknown command {self._command}")
        return int(action() or 0)

    def _say(self, text: str) -> None:
        marked = f"{MARK}: {text}"
        if text.startswith(("Apply complete!", "Destroy complete!")):
            marked = f"{text} ({MARK})"  # the runner reads the counts from the line's beginning
        if self._json:
            marked = json.dumps({"@level": "info", "@message": marked, "type": "log"})
        print(marked, flush=True)

    def _flag(self, name: str, default: str = "") -> str:
        prefix = f"-{name}="
        given = [text.removeprefix(prefix) for text in self._arguments if text.startswith(prefix)]
        return given[-1] if given else default

    def _backend(self) -> Backend:
        return Backend(json.loads(self._settings_file.read_text()))

    def _locked(self, backend: Backend, operation: str) -> None:
        backend.lock(operation, float(self._flag("lock-timeout", "0s").rstrip("s")))

    def _version(self) -> None:
        print(json.dumps({"terraform_version": f"{VERSION}-rehearsal"}))

    def _init(self) -> None:
        prefix = "-backend-config="
        given = [text.removeprefix(prefix) for text in self._arguments if text.startswith(prefix)]
        self._settings_file.parent.mkdir(parents=True, exist_ok=True)
        settings = dict(setting.split("=", 1) for setting in given)
        self._settings_file.write_text(json.dumps(settings))
        Backend(settings).read()
        self._say("initialised; no provider was installed")

    def _validate(self) -> None:
        module = Module()
        print(json.dumps({"rehearsal": True, "valid": True, "diagnostics": []}))
        if not module.resources:
            raise RehearsalError("the module has no resource block")

    def _plan(self) -> int:
        backend, module = self._backend(), Module()
        self._locked(backend, "OperationTypePlan")
        try:
            found = changes(backend.read(), module, destroying=False)
        finally:
            backend.unlock()
        for change in found:
            self._say(f"{change['address']} would be {'/'.join(change['change']['actions'])}d")
        Path(self._flag("out")).write_text(
            json.dumps({"rehearsal": True, "resource_changes": found})
        )
        return 2 if found else 0

    def _show(self) -> None:
        print(Path(self._arguments[-1]).read_text())

    def _apply(self) -> None:
        if "-refresh-only" in self._arguments:
            self._change("OperationTypeRefresh", destroying=False, only_read=True)
        else:
            self._change("OperationTypeApply", destroying=False)

    def _destroy(self) -> None:
        self._change("OperationTypeApply", destroying=True)

    def _change(self, operation: str, *, destroying: bool, only_read: bool = False) -> None:
        backend, module = self._backend(), Module()
        self._locked(backend, operation)
        try:
            state = backend.read()
            found = [] if only_read else changes(state, module, destroying)
            try:
                for change in found:
                    self._carry_out(state, change, float(module.variables.get("seconds", 1)))
                if not only_read:
                    state["outputs"] = {} if destroying else module.outputs()
            finally:
                state["serial"] += 1
                backend.write(state)
        finally:
            backend.unlock()
        done = [change["change"]["actions"][0] for change in found]
        if destroying:
            self._say(f"Destroy complete! Resources: {len(done)} destroyed.")
            return
        added, changed, gone = (done.count(action) for action in ("create", "update", "delete"))
        counts = f"{added} added, {changed} changed, {gone} destroyed"
        self._say(f"Apply complete! Resources: {counts}.")

    def _carry_out(self, state: dict[str, Any], change: dict[str, Any], seconds: float) -> None:
        kind, name, action = change["type"], change["name"], change["change"]["actions"][0]
        self._say(f"{change['address']}: acting as if it were {action}d...")
        time.sleep(seconds)
        state["resources"] = [
            item for item in state["resources"] if (item["type"], item["name"]) != (kind, name)
        ]
        if action != "delete":
            attributes = {"id": str(uuid.uuid4()), **change["change"]["after"]}
            entry = {"module": "module.role", "mode": "managed", "type": kind, "name": name}
            entry |= {"provider": PROVIDER, "instances": [{"attributes": attributes}]}
            state["resources"].append(entry)

    def _force_unlock(self) -> None:
        self._backend().unlock(self._arguments[-1])
        self._say("state unlocked")

    def _state_list(self) -> None:
        for item in self._backend().read()["resources"]:
            print(address(item["type"], item["name"]))

    def _state_push(self) -> None:
        backend = self._backend()
        self._locked(backend, "OperationTypeStatePush")
        try:
            backend.write(json.loads(Path(self._arguments[-1]).read_text()))
        finally:
            backend.unlock()
        self._say("state pushed")


def interrupt(*_: object) -> None:
    raise Interrupted


def main() -> int:
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return Rehearsal(sys.argv[1:]).run()
    except Interrupted:
        reason = "execution halted"
    except (RehearsalError, OSError, ValueError, KeyError) as error:
        reason = str(error) if isinstance(error, RehearsalError) else f"{error!r}"
    print(f"Error: {reason} ({MARK})", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
