"""What stands in an output, as text: foreign words made harmless, and laid out as HTML, Markdown and plain text."""
