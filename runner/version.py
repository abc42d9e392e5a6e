"""Which build of the runner this is (runner.md: Commands).

The runner is dropped into images that hold no Python package, so it carries its own version; a
test holds it equal to `captfctl.version.VERSION`. `deploy/build_runner.py` writes `_build.py`
beside this file into the executable it makes; a source tree has none.
"""

import os
import sys

VERSION = "0.1.0"


def reported(override: str = "") -> str:
    """The version as printed: `v0.1.0`, or what `--version=v0.1.0-suffix` asked for."""
    return override or f"v{VERSION}"


def build_information(override: str = "") -> str:
    """Everything known about this build, as one line of JSON without a newline."""
    import json

    commit, tree_state, build_date = _stamp()
    uname = os.uname()
    facts = {
        "program": "runner",
        "version": reported(override),
        "gitCommit": commit,
        "gitTreeState": tree_state,
        "buildDate": build_date,
        "pythonVersion": sys.version.split()[0],
        "platform": f"{uname.sysname.lower()}/{uname.machine}",
    }
    return json.dumps(facts)


def _stamp() -> tuple[str, str, str]:
    """Commit, tree state and date of the build; "unknown" when run from source."""
    try:
        from importlib import import_module

        build = import_module("runner._build")
    except ImportError:
        return "unknown", "unknown", "unknown"
    return str(build.COMMIT), str(build.TREE_STATE), str(build.DATE)
