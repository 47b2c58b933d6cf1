"""Engines, which turn a neutral prompt into the events of a reply: simulated, or by an upstream server."""
