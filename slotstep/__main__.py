"""`python -m slotstep` is the command."""

from slotstep.cli.app import main

main()
