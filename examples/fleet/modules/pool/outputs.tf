# What every pool module reports (docs/reference/module-contract.md).

output "provider_id" {
  value = "example:///${var.machinepool_name}"
}

output "provider_id_list" {
  value = [for member in terraform_data.member : "example:///${member.id}"]
}

output "replicas" {
  value = length(terraform_data.member)
}

output "instances" {
  value = [
    for member in terraform_data.member : {
      provider_id    = "example:///${member.id}"
      instance_id    = member.output.name
      addresses      = [{ type = "InternalDNS", address = "${member.output.name}.example.com" }]
      failure_domain = member.output.zone
      state          = "running"
    }
  ]
}

output "health" {
  value = { state = "running", healthy = true, message = null, reasons = [] }
}
