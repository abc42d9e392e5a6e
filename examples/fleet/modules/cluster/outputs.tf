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

# What the modules of machines and pools get as captf_cluster_outputs.
output "exports" {
  value = {
    network_id = terraform_data.network.id
    mtu        = terraform_data.network.output.mtu
    subnets    = { for zone, subnet in terraform_data.subnet : zone => subnet.id }
  }
}

output "health" {
  value = { state = "running", healthy = true, message = null, reasons = [] }
}
