"""A module that tells how often it created what it creates."""

import shutil
from pathlib import Path

from tests.e2e.site import QUICKSTART

COUNTED = "registry.example.com/counted/cluster:v1"


class Counted:
    """A module that writes down each thing that it creates, and waits for a gate meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.created = folder / "created"
        self.gate = folder / "gate"
        self.module = folder / "module"
        shutil.copytree(QUICKSTART, self.module)
        waits = f"until test -e {self.gate}; do sleep 0.05; done"
        (self.module / "counted.tf").write_text(
            'resource "terraform_data" "counted" {\n'
            '  provisioner "local-exec" {\n'
            f'    command = "echo >> {self.created}; {waits}"\n'
            "  }\n}\n"
        )

    @property
    def times(self) -> int:
        return len(self.created.read_text().splitlines()) if self.created.exists() else 0
