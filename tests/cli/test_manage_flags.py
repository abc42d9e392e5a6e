"""The options of `captfctl manage` are made from the manager's settings."""

from dataclasses import MISSING, fields
from datetime import timedelta

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from captfctl.cli import run_manager
from captfctl.cli.app import command_line
from captfctl.errors import InputError
from captfctl.model.durations import duration_text, parse_duration
from captfctl.settings import ManagerSettings, PassSettings, settings_with_flags

SETTINGS = settings_with_flags(ManagerSettings)
NOT_FLAGS = {"lease_namespace", "identity", "start_patience"}
IMAGE = "registry.example.com/captf:v1"


@pytest.fixture
def started(monkeypatch):
    """Runs `captfctl manage` with arguments; answers the settings that it would start with."""

    def start(*arguments: str, **environment: str) -> ManagerSettings:
        seen = []
        monkeypatch.setattr(
            run_manager, "run_manager", lambda settings, *_: seen.append(settings) or 0
        )
        done = CliRunner().invoke(command_line(["manage"]), ["manage", *arguments], env=environment)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return seen[0]

    return start


def test_every_setting_is_a_flag_or_known_not_to_be():
    named = {setting.name for setting in SETTINGS}
    assert named | NOT_FLAGS == {field.name for field in fields(ManagerSettings)}
    assert not named & NOT_FLAGS


def test_every_flag_says_what_it_does_and_why_its_default_is_the_right_one():
    for setting in SETTINGS:
        assert setting.flag.help.endswith("."), setting.name
        assert setting.flag.why, setting.name
        assert bool(setting.flag.value) is (setting.type is not bool), setting.name


def test_without_flags_every_setting_has_its_default(started):
    settings = started(CAPTF_MANAGER_IMAGE=IMAGE)
    assert settings.runner_image == IMAGE
    for setting in SETTINGS:
        if setting.default is not MISSING:
            assert getattr(settings, setting.name) == setting.default, setting.name


def test_every_flag_reaches_its_setting(started):
    values = {bool: None, int: 7, str: "text", timedelta: timedelta(seconds=77)}
    arguments, wanted = [], {}
    for setting in SETTINGS:
        if setting.type is bool:
            wanted[setting.name] = not setting.default
            arguments.append(setting.option.replace("--", "--no-" if setting.default else "--"))
            continue
        wanted[setting.name] = value = values[setting.type]
        shown = duration_text(value) if setting.type is timedelta else value
        arguments.append(f"{setting.option}={shown}")

    settings = started(*arguments)

    assert {name: getattr(settings, name) for name in wanted} == wanted


def test_a_duration_that_is_none_names_its_flag(started):
    with pytest.raises(InputError, match="--sync-period cannot be used"):
        started("--sync-period=soon")


def test_a_pass_can_be_given_the_managers_settings():
    assert issubclass(ManagerSettings, PassSettings)
    patience = ManagerSettings(runner_image=IMAGE).start_patience
    assert patience > PassSettings(runner_image=IMAGE).start_patience


def test_the_help_shows_every_flag_with_its_default():
    command = typer.main.get_command(command_line(["manage"])).commands["manage"]
    shown = {name: parameter for parameter in command.params for name in parameter.opts}
    for setting in SETTINGS:
        assert shown[setting.option].help == setting.flag.help


@given(st.integers(0, 10**7))
def test_a_duration_is_read_as_it_was_written(seconds):
    duration = timedelta(seconds=seconds)
    assert parse_duration(duration_text(duration)) == duration
