"""An experiment on a page: its run, its votes, its report."""
