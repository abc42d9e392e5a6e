# What every cluster module is given (docs/reference/module-contract.md). The module decides what it uses.

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

variable "control_plane_endpoint" {
  type     = object({ host = string, port = number })
  nullable = true
}

variable "kubernetes_version" {
  type     = string
  nullable = true
}

variable "control_plane_initialized" {
  type = bool
}

variable "cluster_network" {
  type = object({
    pods            = list(string)
    services        = list(string)
    service_domain  = string
    api_server_port = number
  })
  nullable = true
}

# This module's own variables: spec.variables of the TerraformCluster.

variable "size" {
  type        = string
  default     = "small"
  description = "Of the server; changed in place."
}

variable "image" {
  type        = string
  default     = "v1"
  description = "Of the server; another one replaces it."
}

variable "disks" {
  type        = number
  default     = 1
  description = "How many disks there are."
}
