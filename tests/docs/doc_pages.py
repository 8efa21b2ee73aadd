"""Read the repository's Markdown pages: code blocks, inline code, links, headings and sentences, each with its line number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<indent> *)(?P<marks>```+)(?P<language>[\w-]*)\s*$")
GENERATED = ("docs/azure-restrictions.md", "docs/benchmarks.md", "docs/region-file.md")
"""Pages that a command writes: their tables are exempt from the checks of prose."""
_LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.) +")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[)*\"']*\s+")


@dataclass(frozen=True)
class Block:
    """A fenced code block: its language, its text without indentation, and the line of its fence."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Text:
    """A piece of a page and the line that it starts on."""

    text: str
    line: int


class Page:
    """One Markdown file."""

    def __init__(self, path: Path, text: str | None = None) -> None:
        self.path = path
        self.name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
        self.text = path.read_text() if text is None else text
        self.blocks: list[Block] = []
        prose, fence, code, start = [], None, [], 0
        for number, line in enumerate(self.text.splitlines(), 1):
            found = FENCE.match(line)
            if fence is None and found:
                fence, code, start = found, [], number
            elif fence is not None and found and found["marks"] == fence["marks"] and not found["language"]:
                self.blocks.append(Block(fence["language"], "\n".join(code) + "\n", start))
                fence = None
            elif fence is not None:
                code.append(line.removeprefix(fence["indent"]))
            prose.append("" if fence is not None or found else line)
        assert fence is None, f"{self.name}:{start}: the code block has no end"
        self.prose: list[str] = prose
        """Lines of the page; those of code blocks are empty."""

    def inline_code(self) -> Iterator[Text]:
        """Yield the text of every code span."""
        for number, line in enumerate(self.prose, 1):
            for found in re.finditer(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", line):
                yield Text(found[2].strip(), number)

    def links(self) -> Iterator[Text]:
        """Yield the target of every link and image."""
        for number, line in enumerate(self.prose, 1):
            for found in re.finditer(r"\]\(([^()\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                yield Text(found[1], number)

    def anchors(self) -> set[str]:
        """Return the anchors of the headings, as GitHub and the site generator compute them."""
        headings = [re.match(r"#+ (.+)", line) for line in self.prose]
        return {re.sub(r"[^\w\- ]", "", found[1].lower()).strip().replace(" ", "-") for found in headings if found}

    def sentences(self) -> Iterator[Text]:
        """Yield every sentence of paragraphs, list items, headings and table cells."""
        for paragraph in self._paragraphs():
            text = re.sub(r"`+[^`]+`+", "`code`", paragraph.text)
            text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
            for sentence in _SENTENCE_END.split(text):
                if sentence.strip():
                    yield Text(sentence.strip(), paragraph.line)

    def _paragraphs(self) -> Iterator[Text]:
        lines: list[str] = []
        start = 1
        for number, line in enumerate([*self.prose, ""], 1):
            table = line.lstrip().startswith("|")
            ends = not line.strip() or table or line.startswith("#") or _LIST_ITEM.match(line)
            if ends and lines:
                yield Text(" ".join(lines), start)
                lines = []
            if not line.strip() or line.startswith("<!--"):
                continue
            if table:
                if self.name not in GENERATED:
                    cells = re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", "`code`", line.strip().strip("|")))
                    # In a cell, semicolons separate the items of a list.
                    items = [item for cell in cells for item in cell.split(";")]
                    yield from (Text(item.strip(), number) for item in items if not re.fullmatch(r"[\s:-]*", item))
            elif line.startswith("#"):
                yield Text(line.lstrip("# "), number)
            else:
                start = start if lines else number
                lines.append(_LIST_ITEM.sub("", line).strip())


def pages() -> list[Page]:
    """Return the pages of the documentation: the folder docs, and the Markdown files that stand beside the code."""
    paths = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "node-images/README.md")]
    return [Page(path) for path in [*paths, *sorted((ROOT / "docs").rglob("*.md"))]]
