"""`python -m slotstep` is the command."""

from slotstep.cli import main

main()
