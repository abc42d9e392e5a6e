"""The closed sets of metric label values: a module's run must not mint new ones
(manager.md: Metrics)."""

from runner import wire

KINDS = frozenset({"TerraformCluster", "TerraformMachine", "TerraformMachinePool"})
ACTIONS = ("add", "change", "destroy", "import")


def step_label(name: str) -> str:
    """The step's name, `other` for one that is not known."""
    return name if name in wire.STEPS else "other"
