"""What the scripts in stages/ share."""
