# Nothing real is created: terraform_data is built into Terraform and OpenTofu, so that no provider
# has to be downloaded. With a real cloud this would be one instance group.

locals {
  zones = length(var.failure_domains) > 0 ? var.failure_domains : var.cluster_failure_domains
}

resource "terraform_data" "member" {
  count = var.replicas
  input = {
    name      = "${var.machinepool_name}-${count.index}"
    size      = var.size
    version   = var.kubernetes_version
    network   = var.captf_cluster_outputs.network_id
    zone      = local.zones[count.index % length(local.zones)]
    user_data = sha256(var.bootstrap_data)
    tags      = var.captf_tags
  }
}
