output "control_plane_endpoint" {
  value = { host = "${var.captf_cluster.name}-api.example.com", port = 6443 }
}

output "failure_domains" {
  value = [{ name = "zone-a", control_plane = true }]
}

output "exports" {
  value = { size = length(terraform_data.content.output) }
}

output "health" {
  value = { state = "running", healthy = true, message = null, reasons = [] }
}
