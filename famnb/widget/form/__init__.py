"""A request as a form: what a model's fields need, the controls for them, and what they hold."""
