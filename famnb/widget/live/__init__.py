"""Streams on a page: their live views, the outputs that they leave, and what every widget needs."""
