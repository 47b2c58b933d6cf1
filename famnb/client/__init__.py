"""Sending requests and reading replies: one I/O thread carries all calls; the shells are sync and async."""
