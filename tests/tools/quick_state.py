"""The state of the quick runtime, kept as Terraform's `kubernetes` backend keeps it."""

import base64
import gzip
import http.client
import json
import os
import pathlib
import shlex
import ssl
import time
import urllib.parse

CHUNK = 1_000_000


class State:
    """The state Secret of this run's object."""

    def __init__(self, backend: dict) -> None:
        """`backend` is the configuration that `init` was given."""
        self.backend = backend
        config = json.loads(pathlib.Path(self.backend["config_path"]).read_text())
        cluster = config["clusters"][0]["cluster"]
        self.server = urllib.parse.urlsplit(cluster["server"])
        self.context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.token = pathlib.Path(config["users"][0]["user"]["tokenFile"]).read_text().strip()
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

    def write(self, outputs: dict, resources: int, filler: int = 0) -> None:
        """`filler` more bytes that no compression makes smaller: a large state has several Secrets,
        as the backend splits it."""
        code, secret = self.ask("GET", f"{self.secrets}/{self.name}")
        serial = 1
        if code == 200 and not filler:
            old = json.loads(gzip.decompress(base64.b64decode(secret["data"]["tfstate"])))
            serial = old["serial"] + 1
        elif filler:
            serial = time.time_ns() // 1_000_000
        whole = gzip.compress(self._document(serial, outputs, resources, filler), 1)
        chunks = [whole[at : at + CHUNK] for at in range(0, len(whole), CHUNK)]
        for number, chunk in reversed(list(enumerate(chunks))):
            name = f"{self.name}-part-{number}" if number else self.name
            self._write_chunk(name, base64.b64encode(chunk).decode())

    def _write_chunk(self, name: str, payload: str) -> None:
        code, secret = self.ask("GET", f"{self.secrets}/{name}")
        if code == 200:
            secret["data"] = {"tfstate": payload}
            code, said = self.ask("PUT", f"{self.secrets}/{name}", secret)
        else:
            code, said = self.ask("POST", self.secrets, self._secret(name, payload))
        if code == 409 and self.ask("GET", f"{self.secrets}/{name}")[1]["data"] == {
            "tfstate": payload
        }:
            return  # the answer to the first try was lost
        if code not in (200, 201):
            raise SystemExit(f"Error: the state was not kept: {said.get('message')}")

    def _document(self, serial: int, outputs: dict, resources: int, filler: int) -> bytes:
        rows: list[dict] = [
            {"mode": "managed", "type": "t", "name": str(n)} for n in range(resources)
        ]
        if filler:
            rows[0]["filler"] = os.urandom(filler // 2).hex()
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

    def _secret(self, name: str, payload: str) -> dict:
        written = shlex.split(self.backend["labels"].strip("{}").replace(",", " "))
        labels = dict(pair.split("=", 1) for pair in written)
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
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
