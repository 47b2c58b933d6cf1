"""One module a command of `famnb`: its options and what it prints; the work is done below."""
