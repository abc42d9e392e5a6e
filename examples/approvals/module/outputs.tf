# What every cluster module reports (docs/reference/module-contract.md).

output "control_plane_endpoint" {
  value = { host = "${terraform_data.server.output.name}.example.com", port = 6443 }
}

output "failure_domains" {
  value = [{ name = "a", control_plane = true }]
}

output "exports" {
  value = { server = terraform_data.server.id }
}

output "health" {
  value = { state = "running", healthy = true, message = null, reasons = [] }
}
