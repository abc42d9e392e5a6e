"""Terraform state: read, judged, adopted, unlocked and cleaned up; the inputs records."""
