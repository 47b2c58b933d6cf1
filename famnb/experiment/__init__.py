"""Experiments: prompts times variants times repeats, planned, run within a budget, resumed, and framed.

prompts ┐
        ├── plan (cells, each with its key) ── run (budget, resume, progress) ── ledger ── frame
grid  ──┘
"""
