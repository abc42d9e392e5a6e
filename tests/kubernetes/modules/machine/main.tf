# A machine whose health is a variable.

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
  value = { state = var.state, healthy = var.state == "running", message = null, reasons = [] }
}
