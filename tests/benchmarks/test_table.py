"""How benchmarks tell what they found."""

import io

import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import bench_decide
from benchmarks.figures import (
    Figure,
    Missing,
    Result,
    Yardstick,
    at_least,
    at_most,
    at_most_times,
    show,
)
from benchmarks.manager.fleet import most_overtaken
from benchmarks.timing import percentile
from captfctl.decide import decide_op
from captfctl.model.ops import Op


def printed(*results: Result) -> str:
    out = io.StringIO()
    show(results, Console(file=out, width=200))
    return out.getvalue()


def test_a_figure_stands_beside_its_yardstick_ratio_and_aim():
    stick = Yardstick(name="bare", value=40.0)
    text = printed(Result("runner", [at_most_times("apply", 50.0, "ms", 1.5, stick)]))
    line = " ".join(text.splitlines()[1].split())
    assert line == "runner apply 50 ms bare 40 ms 1.25 x at most 1.50 x yes"


@pytest.mark.parametrize(("value", "kept"), [(3.0, True), (3.01, False)])
def test_an_aim_is_kept_up_to_its_limit(value, kept):
    assert at_most("list", value, "s", 3.0).kept is kept
    stick = Yardstick(name="bare", value=2.0)
    assert at_most_times("list", value, "s", 1.5, stick).kept is kept


def test_without_a_yardstick_there_is_no_ratio():
    assert Figure(what="size", value=1.0).ratio is None
    assert Figure(what="size", value=1.0, yardstick=Yardstick(name="none", value=0.0)).ratio is None


def test_what_could_not_be_measured_is_said_with_its_reason():
    def run():
        yield Figure(what="first", value=1.0)
        raise Missing("etcd is missing; make control-plane builds it")

    result = command._measured("manager", run)
    text = printed(result)
    assert "first" in text
    assert "manager: not measured: etcd is missing; make control-plane builds it" in text


def test_an_unknown_benchmark_is_refused_with_those_there_are(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["storr"])
    assert ended.value.code == 2
    assert "no benchmark is named storr; there are decide, start" in capsys.readouterr().err


def test_the_list_names_every_benchmark(capsys):
    assert command.main(["--list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(command.DESCRIPTIONS)


def test_a_percentile_is_one_of_the_times():
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([float(n) for n in range(100)], 0.99) == 99.0


def test_a_figure_above_its_lower_limit_keeps_its_aim():
    assert at_least("decisions", 100.0, "/s", 100.0).kept
    assert not at_least("decisions", 99.0, "/s", 100.0).kept


def test_the_benchmark_of_decisions_has_a_snapshot_for_each_way_to_go_on():
    situations = {**bench_decide._waiting(), **bench_decide._due(), **bench_decide._in_trouble()}
    decisions = [decide_op(snapshot) for snapshot in situations.values()]
    assert {Op.APPLY, Op.PLAN, Op.DRIFT, Op.REFRESH, Op.DESTROY, Op.RESTORE} <= {
        decision.op for decision in decisions
    }
    assert sum(decision.reason.backing_off for decision in decisions) == 3


def test_fairness_is_how_many_later_ones_started_before_one():
    created = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    assert most_overtaken(created, {"a": 5.0, "b": 6.0, "c": 7.0, "d": 8.0}) == 0
    assert most_overtaken(created, {"a": 8.0, "b": 5.0, "c": 7.0, "d": 6.0}) == 3
    assert most_overtaken(created, {"a": 5.0, "b": 8.0, "c": 6.0, "d": 9.0}) == 1
