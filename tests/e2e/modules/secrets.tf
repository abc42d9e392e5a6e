# Beside examples/approvals/module: a sensitive output, and a provider whose error quotes a credential.

variable "fail" {
  type    = bool
  default = false
}

output "password" {
  value     = "sensitive-4c1d92aa"
  sensitive = true
}

resource "terraform_data" "refused" {
  count = var.fail ? 1 : 0

  provisioner "local-exec" {
    command = "echo \"the server refuses $QUICKSTART_TOKEN\"; exit 1"
  }
}
