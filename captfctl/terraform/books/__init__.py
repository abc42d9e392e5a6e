"""What finished Terraform runs did, and what is recorded and said of it."""
