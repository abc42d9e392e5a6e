"""Plans that wait for a person, and what becomes of them (plans.md: The life of a plan)."""
