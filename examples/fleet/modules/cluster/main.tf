# Nothing real is created: terraform_data is built into Terraform and OpenTofu, so that no provider
# has to be downloaded.

resource "terraform_data" "network" {
  input = {
    name = "${var.captf_cluster.name}-network"
    mtu  = var.mtu
    tags = var.captf_tags
  }
}

resource "terraform_data" "subnet" {
  for_each = toset(var.zones)
  input = {
    network = terraform_data.network.id
    zone    = each.key
  }
}
