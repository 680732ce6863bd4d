"""The command line: one command a file, heavy imports inside the commands.

A mistake of the user's is one line on stderr and exit code 2, never a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..errors import SparseRankError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `sparserank` with the given words, or those of the command line, and exit."""
    import typer

    from .app import app

    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="sparserank", standalone_mode=False)
    except SparseRankError as error:
        code = _complain(str(error))
    except typer.TyperException as error:
        code = _complain(error.format_message())
    except typer.Abort:
        code = 130
    except BrokenPipeError:
        # the reader of our output has gone (`| head`): nothing is wrong, and nothing more can be said
        sys.stderr.close()
        code = 0
    raise SystemExit(code or 0)


def _complain(message: str) -> int:
    print("sparserank: " + " ".join(message.split()), file=sys.stderr)
    return 2
