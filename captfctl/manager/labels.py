"""The closed sets of metric label values: a module's run must not mint new ones (50 §17)."""

KINDS = frozenset({"TerraformCluster", "TerraformMachine", "TerraformMachinePool"})
ACTIONS = ("add", "change", "destroy", "import")

_STEPS = frozenset(
    {
        "init",
        "force-unlock",
        "validate",
        "plan",
        "show-json",
        "apply",
        "apply-refresh-only",
        "destroy",
        "state-push",
        "state-list",
        "prepare",
    }
)


def step_label(name: str) -> str:
    """The step's name, `other` for one that is not known."""
    return name if name in _STEPS else "other"
