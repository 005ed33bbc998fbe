"""The engines, a file each; see bytepair.engine."""
