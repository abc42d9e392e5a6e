# What every pool module is given (docs/reference/module-contract.md). The module decides what it uses.

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
  type        = object({ network_id = string, subnets = map(string) })
  description = "The exports of the cluster's module, as far as they are used here."
}

variable "kubernetes_version" {
  type     = string
  nullable = true
}

variable "machinepool_name" {
  type = string
}

variable "bootstrap_data" {
  type      = string
  sensitive = true
}

variable "bootstrap_format" {
  type = string
}

variable "replicas" {
  type = number
}

variable "failure_domains" {
  type = list(string)
}

variable "cluster_failure_domains" {
  type = list(string)
}

variable "node_labels" {
  type = map(string)
}

variable "autoscaling" {
  type = object({ enabled = bool, min = number, max = number })
}

# This module's own variables: spec.variables of the TerraformMachinePool.

variable "size" {
  type        = string
  default     = "small"
  description = "What kind of instance the members would be."
}
