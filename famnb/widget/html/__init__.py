"""Texts for the notebook's outputs: sanitising, and replies as HTML, Markdown and plain text."""
