"""Terraform state, inputs records and the state lock."""
