"""Which resources a state has (state.md: What a state has)."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from captfctl.terraform.state.contents import addresses_in
from tests.support.binaries import NEEDS_TERRAFORM

PROVIDER = 'provider["terraform.io/builtin/terraform"]'


def resource(name: str, *instances: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "mode": "managed",
        "type": "terraform_data",
        "name": name,
        "provider": PROVIDER,
        "instances": [{"schema_version": 0, "attributes": {}} | i for i in instances],
        **more,
    }


def state(*resources: dict[str, Any]) -> bytes:
    whole = {
        "version": 4,
        "terraform_version": "1.5.0",
        "serial": 1,
        "lineage": "8f0d8fa2-4b5e-4cc5-8a52-1f0c9b0f6f0e",
        "outputs": {},
        "resources": list(resources),
    }
    return json.dumps(whole).encode()


def test_each_instance_is_a_resource_and_data_sources_are_none():
    text = state(
        resource("one", {}),
        resource("many", {"index_key": 0}, {"index_key": 1}, module='module.a["x"]'),
        resource("read", {}, mode="data"),
        resource("left", {"deposed": "0011aabb"}),
        resource("none"),
    )
    assert addresses_in(text) == (
        "terraform_data.one",
        'module.a["x"].terraform_data.many[0]',
        'module.a["x"].terraform_data.many[1]',
        "terraform_data.left (deposed 0011aabb)",
    )


@pytest.mark.parametrize(
    "text", [b"{}", b'{"resources": null}', b'{"resources": [{}]}', b'{"resources": [1]}', b"[]"]
)
def test_what_is_not_as_terraform_writes_it_has_no_resources(text):
    assert addresses_in(text) == ()


NASTY = [
    *("", "a.b", "a[0]", 'say "x"', "back\\slash", "${x}", "%{if}", "$${x}", "$", "%", "line\nend"),
    *("tab\there", "\r", "é", "日本", "🙂", "\u2028", "\x07", "</b>", "&", "\x7f", "\u202e", "'"),
]


def drawn_keys(chance: random.Random) -> list[str]:
    alphabet = [*'ab"\\$%{}[].', "é", "\n", "\u00a0", "\ufeff", "🙂"]
    drawn = ["".join(chance.choices(alphabet, k=chance.randint(1, 8))) for _ in range(200)]
    return list(dict.fromkeys([*NASTY, *drawn]))


@pytest.mark.terraform
@NEEDS_TERRAFORM
def test_addresses_are_those_that_terraform_lists(tmp_path: Path):
    seed = random.randrange(2**32)
    keys = drawn_keys(random.Random(seed))
    text = state(
        resource("named", *({"index_key": key} for key in keys), each="map"),
        resource("counted", *({"index_key": n} for n in range(12)), each="list"),
        resource("below", {}, module="module.a.module.b[1]"),
        resource("single", {}),
    )
    file = tmp_path / "terraform.tfstate"
    file.write_bytes(text)
    command = ["terraform", "state", "list", f"-state={file}"]
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    told = listed.stdout.decode().removesuffix("\n").split("\n")
    ours, theirs = set(addresses_in(text)), set(told)
    assert (ours - theirs, theirs - ours) == (set(), set()), f"seed {seed}"
