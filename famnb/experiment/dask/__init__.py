"""Experiments on a Dask cluster."""
