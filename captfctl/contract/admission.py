"""What admission refuses beyond the schema (30 §3.2 to §3.4, §6)."""

from captfctl.cluster.errors import Cause
from captfctl.model.terraform import TerraformCluster


def check_cluster(new: TerraformCluster, old: TerraformCluster | None = None) -> tuple[Cause, ...]:
    """Every violation of a create (`old` is None) or an update, with its field path."""
    raise NotImplementedError
