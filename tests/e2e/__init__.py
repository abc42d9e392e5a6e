"""Whole lives of objects, through real processes and real Terraform.

The scenarios know nothing of where they run: `LocalSite` is the embedded control plane, `RealSite`
(tests/kubernetes) a real Kubernetes with real Cluster API.
"""
