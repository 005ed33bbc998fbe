"""Holding what is on disk against what made it: `bytepair check` and `bytepair verify`."""
