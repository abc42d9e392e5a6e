# What every cluster module reports (docs/reference/module-contract.md).

output "control_plane_endpoint" {
  value = (
    var.control_plane_endpoint != null
    ? var.control_plane_endpoint
    : { host = "${var.captf_cluster.name}-api.example.com", port = 6443 }
  )
}

output "failure_domains" {
  value = [for zone in sort(var.zones) : { name = zone, control_plane = true }]
}

# What the modules of machines and pools get as captf_cluster_outputs. Export what they need, no more:
# a pool keeps the exports it was applied with, and says so when others have come.
output "exports" {
  value = {
    network_id = terraform_data.network.id
    subnets    = { for zone, subnet in terraform_data.subnet : zone => subnet.id }
  }
}

output "health" {
  value = { state = "running", healthy = true, message = null, reasons = [] }
}
