"""The form of a request: the fields of its model, their controls, and drafts of requests."""
