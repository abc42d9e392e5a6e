"""The same plan has the same fingerprint, whenever and in whatever order it is made, and any other
has another (runner.md: The plan fingerprint).

`CAPTF_SAME_PLANS=50 pytest tests/runner/test_same_plan.py` makes it fifty times.
"""

import json
import os
import random

import pytest

from tests.runner.harness import Job
from tests.runner.test_real_runtime import RUNTIMES, Site
from tests.runner.test_real_runtime import pytestmark as pytestmark

TIMES = int(os.environ.get("CAPTF_SAME_PLANS", "3"))

BEFORE = """
variable "secret" {
  type      = string
  sensitive = true
}
resource "terraform_data" "tainted" { input = "kept" }
resource "terraform_data" "each" {
  for_each = toset(["a", "b", "c"])
  input    = { key = each.key, secret = var.secret }
}
output "endpoint" { value = terraform_data.tainted.id }
"""
AFTER = BEFORE.replace("each.key", '"${each.key}-VALUE"').replace(
    'output "endpoint"',
    'resource "terraform_data" "new" { input = terraform_data.tainted.id }\noutput "endpoint"',
)


@pytest.fixture(params=RUNTIMES)
def site(job: Job, request: pytest.FixtureRequest) -> Site:
    """With a tainted resource, an unknown value, sensitive ones, and several instances."""
    site = Site(job, request.param)
    site.module(BEFORE)
    assert site.run("--op=apply").exit == 0
    state = site.state
    for resource in state["resources"]:
        if resource["name"] == "tainted":
            resource["instances"][0]["status"] = "tainted"
    write(site, state)
    site.module(AFTER.replace("VALUE", "one"))
    return site


def write(site: Site, state: dict) -> None:
    (site.job.path / "state.tfstate").write_text(json.dumps(state))


def shuffled(site: Site) -> None:
    """What stands in another order means the same."""
    state = site.state
    random.shuffle(state["resources"])
    for resource in state["resources"]:
        random.shuffle(resource["instances"])
    state["resources"] = [dict(reversed(resource.items())) for resource in state["resources"]]
    write(site, state)


def fingerprint(site: Site) -> str:
    outcome = site.run("--op=plan")
    assert outcome.exit == 0, outcome.err
    plan = outcome.document["plan"]
    assert (plan["create"], plan["update"], plan["replace"]) == (1, 3, 1)
    return plan["hash"]


def test_the_same_plan_has_the_same_hash_and_another_value_another(site: Site):
    found = set()
    for _ in range(TIMES):
        found.add(fingerprint(site))
        shuffled(site)
    assert len(found) == 1
    site.module(AFTER.replace("VALUE", "two"))
    assert fingerprint(site) not in found
