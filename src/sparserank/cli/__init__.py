"""The command line: one command a file, heavy imports inside the commands.

A mistake of the user's is one line on stderr and exit code 2, never a traceback.
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
    """Run `sparserank` with the given words, or those of the command line, and exit."""
    sys.stdout, sys.stderr = (_steadied(stream) for stream in (sys.stdout, sys.stderr))
    phases = new_phase_lines()
    code = 1
    try:
        code = _run(arguments)
        phases.end(succeeded=code == 0)
        sys.stdout.flush()  # here, where a full disk or a closed pipe can still be handled
    except BrokenPipeError:
        code = _reader_gone()
    except OSError as error:
        _forget(sys.stdout)
        code = _complain(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
    finally:
        phases.end(succeeded=False)
    raise SystemExit(code)


def _steadied(stream: TextIO | None) -> TextIO:
    """The stream, able to show any text whatever its encoding; nowhere, where the caller has closed it (`>&-`)."""
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
        return _complain(str(error))
    except typer.TyperException as error:
        return _complain(error.format_message())
    except typer.Abort:
        return 130
    except SystemExit as ended:
        # how typer and rich leave when the reader of the output has gone
        if isinstance(ended.__context__, BrokenPipeError):
            return _reader_gone()
        raise
    return code or 0


def _complain(message: str) -> int:
    if message:  # it is empty where help has been printed instead
        try:
            print("sparserank: " + " ".join(message.split()), file=sys.stderr)
        except OSError:
            _forget(sys.stderr)
    return 2


def _reader_gone() -> int:
    """The reader of our output has gone (`| head`): nothing is wrong, and nothing more can be said."""
    _forget(sys.stdout)
    return 0


def _forget(stream: TextIO) -> None:
    """Send what is still to be written nowhere, so that the interpreter does not fail on it once more as it ends."""
    with suppress(OSError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
