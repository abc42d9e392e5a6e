"""First applies that never began, on a real control plane."""

from tests.e2e.never_began import FirstAppliesThatNeverBegan
from tests.support.binaries import CLUSTER_STORIES

pytestmark = CLUSTER_STORIES


class TestNeverBegan(FirstAppliesThatNeverBegan):
    pass
