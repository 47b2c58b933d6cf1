"""The board: one prompt to several variants, side by side."""
