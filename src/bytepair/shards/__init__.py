"""What is done with each shard of a corpus, and with what comes of it."""
