"""Approving a plan, apart from the terminal (plans.md: Approving).

`approve` reads, checks in a fixed order, has the plan shown and confirmed, and writes the approval.
"""

from captfctl.approvals.approve import Outcome, Result, Talk, approve
from captfctl.approvals.checks import Refused
from captfctl.approvals.evidence import Evidence, Request, Who

__all__ = ["Evidence", "Outcome", "Refused", "Request", "Result", "Talk", "Who", "approve"]
