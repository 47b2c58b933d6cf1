"""Replies on the wire: bytes to events and events to bytes, one module a dialect. No input or output here."""
