"""The command line: one command per file, with heavy imports inside the commands.

A user's mistake is one line on stderr and exit code 2, never a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from ..errors import SparseRankError
from .output import new_phase_lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `sparserank` with the given arguments, or those of the command line, and exit."""
    sys.stdout, sys.stderr = (_tolerant(stream) for stream in (sys.stdout, sys.stderr))
    phases = new_phase_lines()
    code = 1
    try:
        code = _run(arguments)
        phases.end(succeeded=code == 0)
        sys.stdout.flush()  # here, where a full disk or a closed pipe can still be handled
    except BrokenPipeError:
        code = _closed_pipe()
    except OSError as error:
        _discard(sys.stdout)
        code = _print_error(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
    finally:
        phases.end(succeeded=False)
    raise SystemExit(code)


def _tolerant(stream: TextIO | None) -> TextIO:
    """Return the stream with an encoding that never fails, or a null device if the caller closed it (`>&-`)."""
    if stream is None:
        stream = Path(os.devnull).open("w")  # noqa: SIM115 - open until the process ends
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _run(arguments: Sequence[str] | None) -> int:
    import typer

    from .app import app

    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="sparserank", standalone_mode=False)
    except SparseRankError as error:
        return _print_error(str(error).replace("missing='drop'", "--missing drop"))
    except typer.TyperException as error:
        return _print_error(error.format_message())
    except typer.Abort:
        return 130
    except SystemExit as ended:
        # typer and rich exit in this way when the pipe is closed
        if isinstance(ended.__context__, BrokenPipeError):
            return _closed_pipe()
        raise
    return code or 0


def _print_error(message: str) -> int:
    if message:  # empty if help was printed instead
        try:
            print("sparserank: " + " ".join(message.split()), file=sys.stderr)
        except OSError:
            _discard(sys.stderr)
    return 2


def _closed_pipe() -> int:
    """Handle a reader that closed the pipe (`| head`), which is no error."""
    _discard(sys.stdout)
    return 0


def _discard(stream: TextIO) -> None:
    """Discard unwritten output, so that the interpreter does not fail again at exit."""
    with suppress(OSError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
