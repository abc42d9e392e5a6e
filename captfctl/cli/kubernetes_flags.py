"""Flags as Kubernetes components spell them: `--leader-elect=true`, `--sync_period`
(manager.md: Flags of the manager)."""

from typing import Any

from typer.core import TyperCommand

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class KubernetesCommand(TyperCommand):
    """A command whose boolean flags take a value after `=`; its flags may have `_` for `-`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the arguments into this command line's own spelling, then read them."""
        booleans = {
            name: (param.secondary_opts or [""])[0]
            for param in self.params
            if getattr(param, "is_flag", False)
            for name in param.opts
        }
        return super().parse_args(ctx, [w for a in args if (w := _plain(a, booleans))])


def _plain(argument: str, booleans: dict[str, str]) -> str:
    """The argument in this command line's own spelling; empty: leave it out."""
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument.partition("=")
    name = name.replace("_", "-")
    if equals and name in booleans:
        if value in _TRUE:
            return name
        if value in _FALSE:
            return booleans[name]
    return f"{name}{equals}{value}"
