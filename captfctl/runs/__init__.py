"""The runs engine: a subject wants a run -> at most one Job -> its outcome, read once."""
