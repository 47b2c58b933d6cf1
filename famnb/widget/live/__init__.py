"""Live views of streams, the outputs they leave in the notebook, and what every widget needs."""
