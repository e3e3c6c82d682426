"""What one works with in a notebook: the player, comparisons, and what is shown while it is trained."""
