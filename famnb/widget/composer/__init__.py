"""The composer: the form with a conversation beside it, presets, history and code."""
