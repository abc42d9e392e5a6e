# A pool whose autoscaler has made `size` members of it.

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

variable "machinepool_name" {
  type = string
}

variable "replicas" {
  type = number
}

variable "bootstrap_data" {
  type      = string
  sensitive = true
}

variable "bootstrap_format" {
  type = string
}

variable "failure_domains" {
  type = list(string)
}

variable "cluster_failure_domains" {
  type = list(string)
}

variable "kubernetes_version" {
  type     = string
  nullable = true
}

variable "node_labels" {
  type = map(string)
}

variable "autoscaling" {
  type = object({ enabled = bool, min = number, max = number })
}

locals {
  size = var.autoscaling.enabled ? var.autoscaling.max : var.replicas
  ids  = [for member in terraform_data.member : "test:///${var.machinepool_name}/${member.id}"]
}

resource "terraform_data" "member" {
  count = local.size
  input = sha256(var.bootstrap_data)
}

output "provider_id" {
  value = "test:///pools/${var.captf_object.namespace}/${var.machinepool_name}"
}

output "provider_id_list" {
  value = local.ids
}

output "replicas" {
  value = local.size
}

output "instances" {
  value = [for id in local.ids : { provider_id = id, state = "running" }]
}

output "health" {
  value = { state = "running", healthy = true, message = null, reasons = [] }
}
