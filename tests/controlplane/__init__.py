"""A real Kubernetes control plane with real Cluster API on this machine, for tests.

`assets` finds or builds the binaries, `processes` starts them. `make control-plane` is
`python -m tests.controlplane`.
"""
