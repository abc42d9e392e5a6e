# What every machine module reports (docs/reference/module-contract.md).

output "provider_id" {
  value = "example:///${local.zone}/${terraform_data.instance.id}"
}

output "addresses" {
  value = [{ type = "InternalDNS", address = "${terraform_data.instance.output.name}.example.com" }]
}

output "failure_domain" {
  value = local.zone
}

output "interruptible" {
  value = false
}

output "health" {
  value = { state = "running", healthy = true, message = null, reasons = [] }
}
