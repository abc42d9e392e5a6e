"""The environment of every step: nothing inherited may change what the runtime does (20 §8).

Names and values are bytes decoded with surrogateescape, as in `os.environ`.
"""

from collections.abc import Mapping
from typing import NamedTuple

OWN_TMP = "tmp"  # below the work directory
_PREFIXES = ("TF_", "KUBE_")
_KEPT = frozenset(("TF_IN_AUTOMATION", "TF_INPUT", "KUBE_NAMESPACE"))
# The runtimes also look for their configuration and for providers where these point.
_ALSO_DROPPED = frozenset(
    ("TERRAFORM_CONFIG", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME")
)


class StepEnvironment(NamedTuple):
    """What a step gets, and the names of the variables that were taken away."""

    variables: dict[str, str]
    dropped: tuple[str, ...]


def build(inherited: Mapping[str, str], workdir: str, cli_config: str) -> StepEnvironment:
    """The environment for steps in `workdir`.

    `cli_config` is the CLI configuration file with the provider mirror, "" without a mirror. A
    replaced HOME is not reported as dropped, because every Job has one.
    """
    variables = {}
    dropped = []
    for name, value in inherited.items():
        if (name.startswith(_PREFIXES) and name not in _KEPT) or name in _ALSO_DROPPED:
            dropped.append(name)
        elif name != "HOME":
            variables[name] = value
    variables["TF_DATA_DIR"] = f"{workdir}/.terraform"
    variables["HOME"] = workdir
    variables.setdefault("TMPDIR", f"{workdir}/{OWN_TMP}")
    if cli_config:
        variables["TF_CLI_CONFIG_FILE"] = cli_config
    return StepEnvironment(variables, tuple(sorted(dropped)))
