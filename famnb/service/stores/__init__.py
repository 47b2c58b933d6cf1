"""Where responses are kept: what a store is, one in memory, one in a file, and how a response gets into either."""
