# Nothing real is created: terraform_data is built into Terraform and OpenTofu, so that no provider
# has to be downloaded.

locals {
  zone = coalesce(var.failure_domain, sort(keys(var.captf_cluster_outputs.subnets))[0])
}

resource "terraform_data" "instance" {
  input = {
    name      = var.machine_name
    size      = var.size
    version   = var.kubernetes_version
    network   = var.captf_cluster_outputs.network_id
    subnet    = var.captf_cluster_outputs.subnets[local.zone]
    user_data = sha256(var.bootstrap_data)
    tags      = var.captf_tags
  }
}
