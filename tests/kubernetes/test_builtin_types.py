"""What the embedded control plane knows of Kubernetes' own kinds is what Kubernetes says."""

import pytest

from tests.controlplane import builtin_types

pytestmark = pytest.mark.kubernetes


def test_the_file_is_what_the_pinned_kubernetes_says():
    assert builtin_types.TARGET.read_text() == builtin_types.text()
