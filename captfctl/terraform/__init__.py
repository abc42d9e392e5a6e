"""What a run is for Terraform: what goes into a module and comes out of it, and what it stored."""
