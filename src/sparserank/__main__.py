"""`python -m sparserank` is the command line."""

from .cli import main

main()
