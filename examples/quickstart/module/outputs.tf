# What every cluster module reports (docs/reference/module-contract.md).

output "control_plane_endpoint" {
  value = (
    var.control_plane_endpoint != null
    ? var.control_plane_endpoint
    : { host = "${terraform_data.load_balancer.output.name}.example.com", port = 6443 }
  )
}

output "failure_domains" {
  value = [
    for zone in slice(["a", "b", "c"], 0, min(3, terraform_data.network.output.subnets)) :
    { name = "${var.region}-${zone}", control_plane = true }
  ]
}

output "exports" {
  value = {
    network_id = terraform_data.network.id
    region     = terraform_data.network.output.region
    subnets    = terraform_data.network.output.subnets
  }
}

output "health" {
  value = { state = "running", healthy = true, message = null, reasons = [] }
}
