"""Parse numpydoc docstrings: the summary, the *See Also* names, and the text without that section.

A section is an unindented line with a rule of dashes below it; it ends where the next section begins. A signature such
as `add(x1, x2, /, out=None)` is never a summary.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from itertools import pairwise

_RULE = re.compile(r"(-{3,}|={3,}|~{3,})\s*")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SET = re.compile(r"\{'\w+'(?:, '\w+')+\}")
_VARIES = re.compile(r"#\s*(?:may vary|random)\b")
_SIGNATURE = re.compile(r"(?:[\w\s,]+=\s*)?[A-Za-z_][\w.]*\(")
_SENTENCE = re.compile(r".*?(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bcf)[.!?](?=\s+[A-Z`\"'(]|\s*$)", re.DOTALL)
_ROLE = re.compile(r"(?P<role>:[\w:]+:)?`~?(?:[^`<]*<)?\.?(?P<quoted>[\w.]+)>?`|(?P<bare>[A-Za-z_][\w.]*)(?:\(\))?")
_NOT_OBJECTS = (":ref:", ":doc:", ":mod:", ":term:")


@dataclass(frozen=True)
class Docstring:
    """A parsed docstring; `summary` is "" if there is none."""

    summary: str
    text: str
    see_also: tuple[str, ...]


def parse(raw: str) -> Docstring:
    """Parse a docstring.

    >>> doc = parse('''sort(a)
    ...
    ... Return a sorted copy of an array. It is new.
    ...
    ... See Also
    ... --------
    ... lexsort, numpy.argsort : Indirect sorts.
    ...     They give indices.
    ...
    ... Notes
    ... -----
    ... Stable.
    ... ''')
    >>> doc.summary, doc.see_also
    ('Return a sorted copy of an array.', ('lexsort', 'numpy.argsort'))
    >>> doc.text
    'sort(a)\\n\\nReturn a sorted copy of an array. It is new.\\n\\nNotes\\n-----\\nStable.'
    """
    lines = _deterministic_lines(inspect.cleandoc(raw))
    heads = [at for at, (line, rule) in enumerate(pairwise(lines)) if _is_heading(line, rule)]
    text_lines, names = lines[: heads[0] if heads else len(lines)], []
    summary = _summary(text_lines)
    for start, stop in pairwise([*heads, len(lines)]):
        if lines[start].strip().lower() == "see also":
            names += [name for line in lines[start + 2 : stop] for name in _names(line)]
        else:
            text_lines = text_lines + lines[start:stop]
    return Docstring(summary, "\n".join(text_lines).strip(), tuple(dict.fromkeys(names)))


def _deterministic_lines(text: str) -> list[str]:
    """Return the lines without what differs between runs: addresses, the order of sets, and random output."""
    text = _ADDRESS.sub("", text)
    text = _SET.sub(lambda found: "{" + ", ".join(sorted(found[0][1:-1].split(", "))) + "}", text)
    lines: list[str] = []
    for line in text.split("\n"):
        if _VARIES.search(line) and not line.lstrip().startswith((">>>", "...")):
            while lines and lines[-1].strip() and not lines[-1].lstrip().startswith((">>>", "...")):
                lines.pop()
        else:
            lines.append(line)
    return lines


def _is_heading(line: str, rule: str) -> bool:
    return bool(line.strip()) and not line[0].isspace() and not _RULE.fullmatch(line) and bool(_RULE.fullmatch(rule))


def _summary(lines: list[str]) -> str:
    """Return the first sentence of the first paragraph of prose."""
    for paragraph in "\n".join(lines).split("\n\n"):
        prose = _after_signatures(paragraph.strip())
        if not prose or prose.startswith((".. ", ">>>")) or not any(character.isalpha() for character in prose):
            continue
        sentence = _SENTENCE.match(prose)
        return " ".join((sentence[0] if sentence else prose).split())
    return ""


def _after_signatures(paragraph: str) -> str:
    """Return the paragraph without its leading signatures, one per line."""
    while (call := _SIGNATURE.match(paragraph)) is not None:
        end = _closing(paragraph, call.end())
        rest = re.sub(r"[ \t]*(->[^\n]*)?", "", paragraph[end:], count=1)
        if rest and not rest.startswith("\n"):
            break
        paragraph = rest.strip()
    return paragraph


def _closing(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one before `start`, or the end of the text."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def _names(line: str) -> list[str]:
    """Return the names before the colon of a line; an indented line continues a description."""
    if not line or line[0].isspace():
        return []
    names, place, line = [], 0, line.strip()
    while (item := _ROLE.match(line, place)) is not None:
        after = line[item.end() :].lstrip()
        if after and after[0] not in ",:":
            break
        if item["role"] not in _NOT_OBJECTS:
            names.append((item["quoted"] or item["bare"]).strip("."))
        if not after.startswith(","):
            break
        place = len(line) - len(after[1:].lstrip())
    return names
