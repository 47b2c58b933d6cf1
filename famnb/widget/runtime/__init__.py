"""What every tool of the notebook is built on: views, patches and intents (README.md has the way of a message)."""
