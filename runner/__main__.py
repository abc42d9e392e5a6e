"""Start of the program: `python -m runner`, the console script and the executable."""

import os
import sys


def main() -> int:
    """Run the program with the process's own arguments and environment."""
    from runner.cli import main as run_command_line

    return run_command_line(sys.argv[1:], os.environ)


if __name__ == "__main__":
    sys.exit(main())
