"""Start of the program: `python -m runner`, the console script and the executable."""

from runner.signals import Cancellation


def main() -> int:
    """Run the program with the process's own arguments and environment."""
    cancellation = Cancellation()
    cancellation.watch()
    import gc

    gc.set_threshold(20_000)  # what is loaded at the start is no garbage
    import os
    import sys

    from runner import cli, environ
    from runner.child import settle_descriptors

    settle_descriptors()

    try:
        return cli.main(sys.argv[1:], environ.given(), cancellation)
    except Exception as error:
        # The text of an error may hold a value that must not be shown; its kind does not.
        os.write(2, f"runner: internal error: {type(error).__name__}\n".encode())
        return cli.FAILURE


if __name__ == "__main__":
    import sys

    sys.exit(main())
