"""Small parts of the command line."""

import pytest

from captfctl.cli.output import Format, Listing, Row, show

LISTING = Listing(
    ("Name", "Ready", "Image"),
    [Row(("a", "True", "x" * 120), {"name": "a"}, "thing/a")],
    frozenset({"Image"}),
)


def test_a_table_leaves_wide_columns_out(capsys):
    show(LISTING, Format.TABLE)

    assert capsys.readouterr().out == "NAME   READY\na      True\n"


def test_a_wide_table_is_not_cut(capsys):
    show(LISTING, Format.WIDE)

    assert "x" * 120 in capsys.readouterr().out


def test_a_single_object_stands_alone(capsys):
    show(LISTING, Format.JSON, single=True)

    assert capsys.readouterr().out == '{\n  "name": "a"\n}\n'


def test_version_is_printed_without_loading_the_rest(captfctl):
    ended = captfctl("--version")

    assert ended.code == 0
    assert ended.out.startswith("captfctl ")


def test_help_names_every_command(captfctl):
    ended = captfctl("--help")

    for command in ("reconcile", "delete", "get", "manage", "manifests", "local", "version"):
        assert f"  {command} " in ended.out


@pytest.mark.parametrize("flag", ["--leader-elect=true", "--leader_elect=t", "--leader-elect"])
def test_boolean_flags_of_the_manager_are_spelled_as_in_kubernetes(captfctl, flag):
    ended = captfctl("manage", "--runner-image=a/b:v1", flag)

    assert "POD_NAMESPACE" in ended.err  # what an election needs first


def test_a_boolean_flag_can_be_switched_off(captfctl, tmp_path):
    ended = captfctl(
        "manage", "--runner-image=a/b:v1", "--leader-elect=false", "--runner_events=false"
    )

    assert "POD_NAMESPACE" not in ended.err


def test_a_defect_is_told_without_a_traceback_or_the_errors_text(captfctl, monkeypatch):
    def broken(*_):
        raise KeyError("canary-secret")

    monkeypatch.setattr("captfctl.cli.get_objects.get", broken)
    ended = captfctl("get")

    assert ended.code == 1
    assert "KeyError" in ended.err
    assert "canary-secret" not in ended.err
    assert "Traceback" not in ended.err
    assert "CAPTFCTL_TRACEBACK=1" in ended.err
