"""The local service: every endpoint, answered by a simulated engine or an upstream; `serve` starts it."""

# `server.run` is not among the names here: a process that only starts the service should not load a web server.
from famnb.service.process import Server, serve

__all__ = ["Server", "serve"]
