"""Stores of responses: in memory, or in an SQLite file."""
