"""Small parts of the command line."""

import io
import re

import pytest
import typer

from captfctl.cli.app import command_line
from captfctl.cli.output import Format, Listing, Row, show
from captfctl.cli.styled import Line, Pairs, Styled, print_styled
from tests.cli.conftest import Terminal

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


def test_a_named_command_is_all_that_is_put_together():
    alone = typer.main.get_command(command_line(["approve", "--yes"])).commands
    whole = typer.main.get_command(command_line(["--help"])).commands

    assert set(alone) == {"approve", "version"}
    assert [p.opts for p in alone["approve"].params] == [p.opts for p in whole["approve"].params]


def test_a_misspelled_command_is_told_the_one_that_it_resembles(captfctl):
    ended = captfctl("aprove")

    assert ended.code == 2
    assert "Did you mean 'approve'?" in ended.err


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


def test_columns_of_a_table_begin_where_those_above_do_whatever_is_in_them(capsys):
    rows = [
        Row(("名前", "wide"), {}, ""),
        Row(("two\nlines", "and \x1b[31mcolour"), {}, ""),
        Row(("a", ""), {}, ""),
    ]

    show(Listing(("Name", "Said"), rows), Format.TABLE)

    assert capsys.readouterr().out.splitlines() == [
        "NAME         SAID",
        "名前         wide",
        "two\\nlines   and \\x1b[31mcolour",
        "a",
    ]


PARTS = [
    Line(Styled("Object", "bold"), f": {'word ' * 25}end"),
    Line(Styled("Warning: ", "yellow"), f"{'word ' * 20}end", wrap=True),
    Line(f"{'word ' * 20}end", wrap=True, indent=4),
    Pairs([(Styled("Name", "dim"), Styled("x" * 100)), (Styled("名"), Styled("y"))], indent=2),
]


def test_where_there_is_no_terminal_each_line_stays_whole_and_plain():
    file = io.StringIO()

    print_styled(PARTS, file)

    assert file.getvalue().splitlines() == [
        f"Object: {'word ' * 25}end",
        f"Warning: {'word ' * 20}end",
        f"    {'word ' * 20}end",
        f"  Name  {'x' * 100}",
        "  名    y",
    ]


def test_on_a_terminal_text_is_broken_to_its_width_and_long_lines_are_left_to_it(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    file = Terminal()

    print_styled(PARTS, file)

    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in file.getvalue().splitlines()]
    assert lines == [
        f"Object: {'word ' * 25}end",
        f"Warning: {'word ' * 14}".rstrip(),
        f"{'word ' * 6}end",
        f"    {'word ' * 15}".rstrip(),
        f"    {'word ' * 5}end",
        f"  Name  {'x' * 70}",
        f"        {'x' * 30}",
        "  名    y",
    ]
    assert "\x1b[1mObject\x1b[0m" in file.getvalue()
    assert "\x1b[33mWarning: \x1b[0m" in file.getvalue()
