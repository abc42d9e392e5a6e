"""First applies that never began, with real Terraform on the embedded control plane."""

from tests.e2e.never_began import FirstAppliesThatNeverBegan
from tests.support.binaries import LOCAL_STORIES

pytestmark = LOCAL_STORIES


class TestNeverBegan(FirstAppliesThatNeverBegan):
    pass
