"""Settings of every test."""

import logging
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine draws slowly and finishes late: neither says anything about the code.
settings.register_profile(
    "captfctl", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
# The same examples each time, for where an unrelated change must not be held up by a new one.
settings.register_profile("repeatable", parent=settings.get_profile("captfctl"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "captfctl"))

# Children inherit what is ignored: under nohup, tests of what SIGHUP does would wait for ever.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def no_log_of_an_earlier_command():
    """A command run in this process logs to a captured standard error that ends with its test."""
    yield
    root = logging.getLogger()
    for handler in [h for h in root.handlers if type(h) is logging.StreamHandler]:
        root.removeHandler(handler)


_REAL = {"terraform": "terraform or tofu", "kubectl": "kubectl", "kubernetes": "Kubernetes"}


def pytest_terminal_summary(terminalreporter):
    """How many tests ran against the real thing: a green run without them proves less."""
    passed = terminalreporter.stats.get("passed", [])
    counts = {
        name: sum(marker in report.keywords for report in passed) for marker, name in _REAL.items()
    }
    told = ", ".join(f"{count} with real {name}" for name, count in counts.items())
    terminalreporter.write_line(f"of these {told}")
    for report in terminalreporter.stats.get("rerun", []):
        crash = getattr(report.longrepr, "reprcrash", None)
        what = crash.message if crash else str(report.longrepr)[-2000:]
        terminalreporter.write_line(f"the first time {report.nodeid} failed with: {what}")
