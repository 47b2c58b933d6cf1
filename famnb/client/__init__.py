"""Sending requests and reading replies: one I/O thread carries all calls; the shells are sync and async.

This module imports nothing, so that `exchange` and `response_reader`, which the ledger reads, come without the network.
"""
