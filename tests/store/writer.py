"""A process that writes to a store until it is killed, and says what was acknowledged.

    python -m tests.store.writer DIRECTORY PREFIX

Prints one line per acknowledged write: the name (or `-name` for a delete) and the version.
"""

import sys
from pathlib import Path

from captfctl.clock import SystemClock
from captfctl.embedded.store import EmbeddedStore


def main() -> None:
    store = EmbeddedStore.open(Path(sys.argv[1]), SystemClock())
    secrets = store.registry.find("", "v1", "secrets")
    number = 0
    while True:
        name = f"{sys.argv[2]}-{number}"
        body = {"metadata": {"name": name}, "stringData": {"k": "x" * 2000}}
        written = store.create(secrets, body, "default")
        print(name, written.resource_version, flush=True)
        if number % 3 == 2:
            store.delete(secrets, name, "default")
            print(f"-{name}", store.resource_version, flush=True)
        number += 1


if __name__ == "__main__":
    main()
