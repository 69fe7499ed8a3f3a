"""`python -m deep_gemm demo | doctor | compile | plan`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
