"""Options of a command made from a class of settings."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from datetime import timedelta
from inspect import Parameter
from typing import Annotated, Any

import typer

from captfctl.cli.options import duration
from captfctl.model.durations import duration_text
from captfctl.settings import PassSettings, Setting, settings_with_flags

Command = Callable[..., None]


def with_flags_of(kind: type[PassSettings]) -> Callable[[Command], Command]:
    """Give a command an option for each setting, before its own keyword-only ones.

    The command gets their values as further keywords; `given_settings` makes settings of them.
    """

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command)
        made = [_parameter(setting) for setting in settings_with_flags(kind)]
        own = list(signature.parameters.values())
        first = [p for p in own if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
        last = [p for p in own if p.kind is Parameter.KEYWORD_ONLY]
        parameters = [*first, *made, *last]
        # What typer reads of a command.
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorate


def given_settings(kind: type[PassSettings], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the options, as the settings hold them. Raises `InputError`."""
    return {
        setting.name: duration(values[setting.name], setting.option)
        if setting.type is timedelta
        else values[setting.name]
        for setting in settings_with_flags(kind)
    }


def default_text(setting: Setting) -> Any:
    """The default as it is written on the command line."""
    if setting.default is MISSING:
        return ""
    if isinstance(setting.default, timedelta):
        return duration_text(setting.default)
    return setting.default


def _parameter(setting: Setting) -> Parameter:
    flag = setting.flag
    default = default_text(setting)
    # A boolean that is on needs a way to switch it off, which typer makes without a name given.
    names = () if default is True else (setting.option,)
    option = typer.Option(
        *names,
        metavar=flag.value or None,
        envvar=flag.variable or None,
        help=flag.help,
    )
    of = str if setting.type is timedelta else setting.type
    return Parameter(
        setting.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[of, option]
    )
