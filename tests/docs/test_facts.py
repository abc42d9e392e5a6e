"""What the reference says in tables is what the code has."""

import re
import runpy
from collections.abc import Iterator

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from captfctl.decide import Reason
from captfctl.decide.explain import EXPLANATIONS
from captfctl.manager.metrics import PrometheusMetrics
from captfctl.manager.work_metrics import WorkMetrics
from captfctl.model import keys
from captfctl.model.conditions import Type
from captfctl.model.ops import Op
from captfctl.model.terraform import JobPolicy, TerraformClusterSpec
from runner.options import GLOBAL_FLAGS
from runner.run_options import RUN_FLAGS
from tests.docs.pages import REFERENCE


def _rows(page: str, heading: str) -> Iterator[list[str]]:
    """The cells of the tables below a heading, without the heads of the tables."""
    text = (REFERENCE / page).read_text()
    section = re.split(r"^#+ ", text.partition(f"## {heading}\n")[2], maxsplit=1, flags=re.M)[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, flags=re.M)
    assert tables, f"{page} has no table below {heading}"
    for table in tables:
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def _named(page: str, heading: str) -> set[str]:
    """Everything in code spans in the first column."""
    return {name for row in _rows(page, heading) for name in re.findall(r"`([^`]+)`", row[0])}


def test_the_page_of_flags_is_what_the_settings_say():
    page = runpy.run_path(str(REFERENCE / "make.py"))["flags_page"]()

    assert (REFERENCE / "flags.md").read_text() == page


def test_every_series_of_the_manager_stands_there():
    registry = CollectorRegistry()
    PrometheusMetrics(registry, lambda: ())
    WorkMetrics(registry)
    served = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in registry.collect()
    }

    assert _named("manager.md", "Metrics") == served


@pytest.mark.parametrize(
    ("heading", "flags"), [("Flags of run", RUN_FLAGS), ("Global flags", GLOBAL_FLAGS)]
)
def test_every_flag_of_the_runner_stands_there(heading, flags):
    described = _named("runner.md", heading)

    assert {f"--{flag.name}" for flag in flags} - described == set()


def test_every_reason_of_a_decision_stands_there_in_the_words_of_the_events():
    described = {row[0].strip("`"): row[1] for row in _rows("decision.md", "Reasons of decisions")}

    assert described == {reason.value: text for reason, text in EXPLANATIONS.items()}
    assert {reason.value for reason in Reason if not reason.backing_off} == described.keys()


def test_every_operation_and_type_of_condition_stands_there():
    assert _named("runs.md", "Operations") == set(Op)
    assert _named("conditions-and-events.md", "Types of conditions") == set(Type)


def test_every_key_of_metadata_stands_there():
    text = (REFERENCE / "metadata.md").read_text()
    known = {
        value
        for name, value in vars(keys).items()
        if name.isupper() and isinstance(value, str) and ("/" in value or "." in value)
    }

    # Keys that share a prefix are written once with it, then from the slash on.
    def stands_there(key: str) -> bool:
        return f"{key}" in text or f"…/{key.rpartition('/')[2]}`" in text

    assert {key for key in known if not stands_there(key)} <= {keys.JOB_NAME, keys.HOSTNAME}


@pytest.mark.parametrize(
    ("heading", "kind"), [("TerraformCluster", TerraformClusterSpec), ("Job policy", JobPolicy)]
)
def test_every_field_stands_there(heading, kind):
    described = {name.partition(".")[0] for name in _named("api.md", heading)}

    assert {field.encode_name for field in msgspec.structs.fields(kind)} - described == set()
