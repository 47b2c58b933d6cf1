"""The dashboard: spend, calls, latency and errors over time, and the latest calls to open."""
