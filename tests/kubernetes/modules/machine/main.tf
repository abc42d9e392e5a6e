# A machine whose health is a variable, or told by a file of its name in a folder.

variable "captf_contract" {
  type = string
}

variable "captf_cluster" {
  type = object({ name = string, namespace = string })
}

variable "captf_object" {
  type = object({ kind = string, name = string, namespace = string })
}

variable "captf_tags" {
  type = map(string)
}

variable "captf_cluster_outputs" {
  type = any
}

variable "machine_name" {
  type = string
}

variable "bootstrap_data" {
  type      = string
  sensitive = true
}

variable "bootstrap_format" {
  type = string
}

variable "failure_domain" {
  type     = string
  nullable = true
}

variable "kubernetes_version" {
  type     = string
  nullable = true
}

variable "control_plane" {
  type = bool
}

variable "state" {
  type    = string
  default = "running"
}

variable "region" {
  type    = string
  default = "eu-north"
}

variable "signals" {
  type    = string
  default = ""
}

locals {
  gone  = var.signals != "" && fileexists("${var.signals}/${var.captf_object.name}")
  state = local.gone ? "terminated" : var.state
}

resource "terraform_data" "instance" {
  input = sha256(var.bootstrap_data)
}

output "provider_id" {
  value = "test:///${var.captf_object.namespace}/${var.machine_name}/${terraform_data.instance.id}"
}

output "addresses" {
  value = [{ type = "InternalIP", address = "10.0.0.7" }]
}

output "failure_domain" {
  value = var.failure_domain
}

output "interruptible" {
  value = false
}

output "health" {
  value = { state = local.state, healthy = local.state == "running", message = null, reasons = [] }
}
