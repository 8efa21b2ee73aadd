"""Entry point of `python3 -m cni.node`."""

import sys

from cni.node.cli import main

if __name__ == "__main__":
    sys.exit(main())
