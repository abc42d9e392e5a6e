# Nothing real is created: terraform_data is built into Terraform and OpenTofu, so that no provider
# has to be downloaded.

# A change of its size is made in place, another image makes it anew.
resource "terraform_data" "server" {
  triggers_replace = [var.image]

  input = {
    name = "${var.captf_cluster.name}-server"
    size = var.size
  }
}

resource "terraform_data" "disk" {
  count = var.disks

  input = "${var.captf_cluster.name}-disk-${count.index}"
}
