"""What was seen and how it was scored: the ledger, its sums, the checks of scores, and evidence made of them."""
