"""Settings of every test."""

from hypothesis import HealthCheck, settings

# A loaded machine draws slowly and finishes late: neither says anything about the code.
settings.register_profile(
    "captfctl", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("captfctl")
