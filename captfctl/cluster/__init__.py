"""The one door to objects: its protocol, its errors, and what implements it."""
