"""Terraform and OpenTofu runs that nobody has to babysit."""
