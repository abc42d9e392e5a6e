"""What the embedded control plane knows of Kubernetes' own kinds is what Kubernetes says."""

from tests.controlplane import builtin_types


def test_the_file_is_what_the_pinned_kubernetes_says():
    assert builtin_types.TARGET.read_text() == builtin_types.text()
