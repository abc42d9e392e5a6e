#!/usr/bin/env -S python3 -S -E -s
"""A runtime that keeps its state in the API as `kubernetes` backends do, and does nothing else.

For tests with many objects at once: a whole run takes a fraction of what Terraform takes. The
module is not read; the variable `seconds` says how long an apply takes.
"""

import base64
import gzip
import http.client
import json
import os
import pathlib
import shlex
import ssl
import sys
import time
import urllib.parse

OUTPUTS = {
    "control_plane_endpoint": {"host": "api.example.com", "port": 6443},
    "exports": {"network_id": "net-1"},
    "failure_domains": [{"name": "zone-a"}],
    "health": {"state": "running", "healthy": True},
}
KEPT = pathlib.Path("backend.json")
PLANNED = {"address": "t.a", "change": {"actions": ["create"], "before": None, "after": {}}}


def init(arguments: list[str]) -> None:
    given = [text.removeprefix("-backend-config=") for text in arguments if "-config=" in text]
    KEPT.write_text(json.dumps(dict(text.split("=", 1) for text in given)))


class State:
    """The state Secret of this run's object."""

    def __init__(self) -> None:
        self.backend = json.loads(KEPT.read_text())
        config = json.loads(pathlib.Path(self.backend["config_path"]).read_text())
        cluster = config["clusters"][0]["cluster"]
        self.server = urllib.parse.urlsplit(cluster["server"])
        self.context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.token = pathlib.Path(config["users"][0]["user"]["tokenFile"]).read_text()
        namespace = self.backend["namespace"]
        self.secrets = f"/api/v1/namespaces/{namespace}/secrets"
        self.name = f"tfstate-default-{self.backend['secret_suffix']}"

    def ask(self, method: str, path: str, document: object = None) -> tuple[int, dict]:
        """Tried for two minutes, as long as Terraform would wait: a test may break the server."""
        deadline = time.monotonic() + 120
        while True:
            try:
                return self._ask(method, path, document)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise SystemExit(f"Error: the state cannot be kept: {error}") from None
                time.sleep(0.5)

    def _ask(self, method: str, path: str, document: object) -> tuple[int, dict]:
        connection = http.client.HTTPSConnection(
            self.server.hostname or "", self.server.port, timeout=10, context=self.context
        )
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        body = None if document is None else json.dumps(document)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        if answer.status >= 500:
            raise OSError(f"{answer.status} {answer.reason}")
        return answer.status, json.loads(answer.read())

    def write(self, outputs: dict, resources: int) -> None:
        code, secret = self.ask("GET", f"{self.secrets}/{self.name}")
        serial = 1
        if code == 200:
            old = json.loads(gzip.decompress(base64.b64decode(secret["data"]["tfstate"])))
            serial = old["serial"] + 1
        payload = base64.b64encode(gzip.compress(self._document(serial, outputs, resources)))
        if code == 200:
            secret["data"] = {"tfstate": payload.decode()}
            code, said = self.ask("PUT", f"{self.secrets}/{self.name}", secret)
        else:
            code, said = self.ask("POST", self.secrets, self._secret(payload.decode()))
        if code == 409 and self.ask("GET", f"{self.secrets}/{self.name}")[1]["data"] == {
            "tfstate": payload.decode()
        }:
            return  # the answer to the first try was lost
        if code not in (200, 201):
            raise SystemExit(f"Error: the state was not kept: {said.get('message')}")

    def _document(self, serial: int, outputs: dict, resources: int) -> bytes:
        rows = [{"mode": "managed", "type": "t", "name": str(n)} for n in range(resources)]
        return json.dumps(
            {
                "version": 4,
                "terraform_version": "1.9.0",
                "serial": serial,
                "lineage": "0e0f0000-0000-4000-8000-000000000000",
                "outputs": {n: {"value": v, "type": "dynamic"} for n, v in outputs.items()},
                "resources": rows,
            }
        ).encode()

    def _secret(self, payload: str) -> dict:
        written = shlex.split(self.backend["labels"].strip("{}").replace(",", " "))
        labels = dict(pair.split("=", 1) for pair in written)
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": self.name,
                "labels": {
                    **labels,
                    "tfstate": "true",
                    "tfstateSecretSuffix": self.backend["secret_suffix"],
                    "tfstateWorkspace": "default",
                    "app.kubernetes.io/managed-by": "terraform",
                },
                "annotations": {"encoding": "gzip"},
            },
            "data": {"tfstate": payload},
        }


def main(arguments: list[str]) -> int:
    command = arguments[0]
    if command == "version":
        print('{"terraform_version": "1.9.0", "platform": "linux_amd64"}')
    elif command == "init":
        init(arguments)
    elif command == "validate":
        print('{"valid": true, "diagnostics": []}')
    elif command == "show":
        print(json.dumps({"resource_changes": [PLANNED]}))
    elif command == "plan":
        return 2
    elif command == "apply":
        variables = json.loads(pathlib.Path("terraform.tfvars.json").read_text())
        time.sleep(variables.get("seconds", 0))
        State().write(OUTPUTS, 1)
    elif command == "destroy":
        State().write({}, 0)
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
