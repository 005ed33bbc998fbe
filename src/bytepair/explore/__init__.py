"""Looking at tokenizers: what the commands show. Nothing but commands imports it."""
