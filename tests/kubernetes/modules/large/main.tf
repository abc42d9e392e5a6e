# A state that is too large for one Secret as long as `large` is true. `random` is a file of random
# bytes, which no compression makes smaller; the tests make it.

resource "terraform_data" "content" {
  input = var.large ? filebase64("${path.module}/random") : "small"
}
