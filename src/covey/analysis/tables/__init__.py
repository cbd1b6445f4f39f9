"""What the checks look at: lives, stays, messages, deliveries and what is owed, each made once for all of them."""
