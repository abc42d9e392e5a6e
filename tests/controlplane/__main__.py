"""`make control-plane`: have everything that `make test-kubernetes` starts."""

import sys

from tests.controlplane.assets import AssetsMissingError, build


def main() -> int:
    try:
        assets = build()
    except AssetsMissingError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    for name, path in assets.binaries.items():
        print(f"{name}: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
