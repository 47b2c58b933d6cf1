"""HTML, Markdown and plain text for the notebook: sanitising, transcripts, differences, highlighting, messages."""
