"""A module that tells how often it created what it creates."""

import shutil
from pathlib import Path

from tests.e2e.site import QUICKSTART, Site


class Counted:
    """A module that writes down each thing that it creates, and waits for a gate meanwhile. The
    site gets an `image` for it."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.created = folder / "created"
        self.gate = folder / "gate"
        module = folder / "counted"
        shutil.copytree(QUICKSTART, module)
        waits = f"until test -e {self.gate}; do sleep 0.05; done"
        (module / "counted.tf").write_text(
            'resource "terraform_data" "counted" {\n'
            '  provisioner "local-exec" {\n'
            f'    command = "echo >> {self.created}; {waits}"\n'
            "  }\n}\n"
        )
        self.image = f"registry.example.com/{site.fresh_name('counted')}/cluster:v1"
        site.add_image(self.image, module=module)

    @property
    def times(self) -> int:
        return len(self.created.read_text().splitlines()) if self.created.exists() else 0
