"""What travels, as pure functions without I/O: bytes to events and back, one file per dialect."""
