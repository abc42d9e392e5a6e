"""`Owner` as the Jobs see it; it lives in the model because the state is named by it too."""

from captfctl.model.owner import Owner

__all__ = ["Owner"]
