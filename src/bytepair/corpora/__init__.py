"""From a published file to documents in splits; knows files and documents, nothing of BPE."""
