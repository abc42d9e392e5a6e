"""The environment of every step: nothing inherited may change what the runtime does
(runner.md: Environment of the steps).

Names and values are bytes decoded with surrogateescape, as in `os.environ`.
"""

import os
from collections.abc import Mapping

OWN_TMP = "tmp"  # below the work directory
_GIVEN = "/proc/self/environ"
_PREFIXES = ("TF_", "KUBE_")
_KEPT = frozenset(("TF_IN_AUTOMATION", "TF_INPUT", "KUBE_NAMESPACE"))
# The runtimes also look for their configuration and for providers where these point.
_ALSO_DROPPED = frozenset(
    ("TERRAFORM_CONFIG", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME")
)


def given() -> dict[str, str]:
    """The environment this process was started with.

    `os.environ` is not always that: started without a locale, Python sets `LC_CTYPE` in it before
    it runs the first line of a program (PEP 538). The kernel keeps what was given; where it cannot
    be asked, `os.environ` has to do.
    """
    try:
        with open(_GIVEN, "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return dict(os.environ)
    variables: dict[str, str] = {}
    for entry in entries:
        name, equals, value = os.fsdecode(entry).partition("=")
        if name and equals:
            variables.setdefault(name, value)  # of one given twice, the C library reads the first
    return variables


def dropped(inherited: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the variables that no step gets.

    HOME is replaced and not among them: every Job has one.
    """
    return tuple(sorted(filter(_changes_the_runtime, inherited)))


def build(inherited: Mapping[str, str], workdir: str, cli_config: str) -> dict[str, str]:
    """The environment for steps in `workdir`.

    `cli_config` is the CLI configuration file with the provider mirror, "" without a mirror.
    """
    variables = {
        name: value
        for name, value in inherited.items()
        if name != "HOME" and not _changes_the_runtime(name)
    }
    variables["TF_DATA_DIR"] = f"{workdir}/.terraform"
    variables["HOME"] = workdir
    variables.setdefault("TMPDIR", f"{workdir}/{OWN_TMP}")
    if cli_config:
        variables["TF_CLI_CONFIG_FILE"] = cli_config
    return variables


def _changes_the_runtime(name: str) -> bool:
    return (name.startswith(_PREFIXES) and name not in _KEPT) or name in _ALSO_DROPPED
