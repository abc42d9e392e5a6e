# Slow resources of a real provider: it comes from the image's mirror, never from a registry.

terraform {
  required_providers {
    time = {
      source  = "hashicorp/time"
      version = "0.14.2"
    }
  }
}

resource "time_sleep" "network" {
  create_duration  = "${var.seconds}s"
  destroy_duration = "1s"
}

resource "time_static" "made" {
  triggers = { network = time_sleep.network.id }
}
