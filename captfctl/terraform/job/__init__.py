"""A decided Terraform run as a Job: what it runs, with which policy, image and arguments."""
