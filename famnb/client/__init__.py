"""Sending requests and reading replies: one I/O thread carries all calls; the shells are sync and async."""

from famnb.client.client import AsyncClient, Client
from famnb.client.config import Deadlines
from famnb.client.exchange import Exchange, Recorder
from famnb.client.replay import Memory, Replay, Replays, play
from famnb.client.retry import Retries
from famnb.client.stream import Stream

__all__ = [
    "AsyncClient",
    "Client",
    "Deadlines",
    "Exchange",
    "Memory",
    "Recorder",
    "Replay",
    "Replays",
    "Retries",
    "Stream",
    "play",
]
