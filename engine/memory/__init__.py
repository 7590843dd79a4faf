"""Where the KV cache lies: a range of addresses reserved once, and pages of memory under the tokens that exist."""
