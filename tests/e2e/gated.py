"""A runtime whose `init` waits at a gate, so that a run can be met before it has done anything."""

from pathlib import Path

from tests.e2e.site import QUICKSTART, Site

_RUNTIME = """#!/bin/sh
if [ "$1" = init ] && ! [ -e {folder}/open ]
then
  mktemp {folder}/came.XXXXXX
  until [ -e {folder}/open ]; do sleep 0.05; done
fi
exec terraform "$@"
"""


class Gate:
    """Shut at first. The site gets an `image` for it, with the quick start's module."""

    def __init__(self, site: Site, folder: Path) -> None:
        self._folder = folder
        self._open = folder / "open"
        runtime = folder / "terraform"
        runtime.write_text(_RUNTIME.format(folder=folder))
        runtime.chmod(0o755)
        self.image = f"registry.example.com/{site.fresh_name('gated')}/cluster:v1"
        site.add_image(self.image, module=QUICKSTART, runtime=runtime)

    def open(self) -> None:
        self._open.touch()

    def shut(self) -> None:
        self._open.unlink()

    @property
    def came(self) -> int:
        """How many runs have come to the gate while it was shut."""
        return len(list(self._folder.glob("came.*")))
