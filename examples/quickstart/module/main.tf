# Nothing real is created: terraform_data is built into Terraform and OpenTofu, so that no provider
# has to be downloaded. Each resource sleeps while it is created, as a real one would.

resource "terraform_data" "network" {
  input = {
    name    = "${var.captf_cluster.name}-network"
    region  = var.region
    subnets = var.subnets
    tags    = var.captf_tags
  }

  lifecycle {
    precondition {
      condition     = var.subnets >= 1
      error_message = "A network needs at least one subnet, not ${var.subnets}."
    }
  }

  provisioner "local-exec" {
    command = "sleep ${var.seconds}"
  }
}

resource "terraform_data" "load_balancer" {
  input = {
    name    = "${var.captf_cluster.name}-api"
    network = terraform_data.network.id
    version = var.kubernetes_version
    cidrs   = var.cluster_network
    ready   = var.control_plane_initialized
  }

  provisioner "local-exec" {
    command = "sleep ${var.seconds}"
  }
}
