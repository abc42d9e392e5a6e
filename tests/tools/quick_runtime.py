"""A runtime that keeps its state in the API as `kubernetes` backends do, and does nothing else.

For tests with many objects at once: a whole run takes a fraction of what Terraform takes. The
module is not read; the variable `seconds` says how long an apply takes, `state_bytes` how large its
state is.
"""

# ruff: noqa: PTH123  importing pathlib costs a step half of its start-up

import json
import os
import sys
import time

BACKEND = "backend.json"
HEALTH = {"state": "running", "healthy": True}
PLANNED = {"address": "t.a", "change": {"actions": ["create"], "before": None, "after": {}}}


def init(arguments: list[str]) -> None:
    given = [text.removeprefix("-backend-config=") for text in arguments if "-config=" in text]
    with open(BACKEND, "w") as file:
        json.dump(dict(text.split("=", 1) for text in given), file)


def write_state(outputs: dict, resources: int, filler: int = 0) -> None:
    from quick_state import State  # most steps do without what it imports

    with open(BACKEND) as file:
        State(json.load(file)).write(outputs, resources, filler)


def outputs_for(variables: dict) -> dict:
    """What a module of the role reports that has these inputs."""
    if "machine_name" in variables:
        return {
            "provider_id": f"quick:///{variables['machine_name']}",
            "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
            "failure_domain": variables["failure_domain"],
            "interruptible": False,
            "health": HEALTH,
        }
    if "machinepool_name" in variables:
        pool = f"quick:///pools/{variables['machinepool_name']}"
        members = [f"{pool}/{number}" for number in range(variables["replicas"])]
        return {
            "provider_id": pool,
            "provider_id_list": members,
            "replicas": len(members),
            "instances": [{"provider_id": member, "state": "running"} for member in members],
            "health": HEALTH,
        }
    return {
        "control_plane_endpoint": {"host": "api.example.com", "port": 6443},
        "exports": {"network_id": "net-1"},
        "failure_domains": [{"name": "zone-a"}],
        "health": HEALTH,
    }


def main(arguments: list[str]) -> int:
    command = arguments[0]
    if command == "version":
        print('{"terraform_version": "1.9.0", "platform": "linux_amd64"}')
    elif command == "init":
        init(arguments)
    elif command == "validate":
        print('{"valid": true, "diagnostics": []}')
    elif command == "show":
        print(json.dumps({"resource_changes": [PLANNED]}))
    elif command == "plan":
        return 2
    elif command == "apply":
        with open("terraform.tfvars.json") as file:
            variables = json.load(file)
        time.sleep(variables.get("seconds", 0))
        write_state(outputs_for(variables), 1, variables.get("state_bytes", 0))
    elif command == "destroy":
        write_state({}, 0)
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
