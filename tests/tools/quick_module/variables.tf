# What tests give to objects that the quick runtime runs. It reads the variables, but no module.

variable "region" { default = null }
variable "subnets" { default = null }

variable "seconds" {
  description = "How long an apply takes."
  default     = 0
}

variable "state_bytes" {
  description = "How large its state is."
  default     = 0
}

variable "round" {
  description = "Changes the inputs."
  default     = 0
}
