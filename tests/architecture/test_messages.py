"""Every slug in the code stands in docs/messages.md, and the other way round."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(p for folder in ("nvprof_tools", "nvtx_markers") for p in (ROOT / folder).rglob("*.py"))
TABLE_ROW = re.compile(r"^\|\s*`([a-z0-9-]+)`\s*\|", re.MULTILINE)
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@cache
def trees() -> list[ast.Module]:
    return [ast.parse(p.read_text("utf-8"), str(p)) for p in FILES]


def documented() -> list[str]:
    return TABLE_ROW.findall((ROOT / "docs" / "messages.md").read_text("utf-8"))


@cache
def parameters() -> dict[str, int]:
    """Classes and functions that take a slug → the place of that argument."""
    out = {}
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                names = [a.arg for a in node.args.args if a.arg not in {"self", "cls"}]
                if "slug" in names and node.name != "__init__":
                    out[node.name] = names.index("slug")
            elif isinstance(node, ast.ClassDef):
                fields = [
                    n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
                ]
                if "slug" in fields:
                    out[node.name] = fields.index("slug")
                if any(isinstance(b, ast.Name) and b.id in {"ToolError", "Exception"} for b in node.bases):
                    out.setdefault(node.name, 0)
    return out


@cache
def in_code() -> dict[str, str]:
    """Slug → where it stands: constants given where a slug is expected, through variables of the same module too."""
    takes = parameters()
    out: dict[str, str] = {}
    for path, tree in zip(FILES, trees(), strict=True):
        values = {
            target.id: node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name not in takes:
                continue
            given = [k.value for k in node.keywords if k.arg == "slug"]
            if not given and len(node.args) > takes[name]:
                given = [node.args[takes[name]]]
            for value in given:
                found = values.get(value.id, value) if isinstance(value, ast.Name) else value
                options = [found.body, found.orelse] if isinstance(found, ast.IfExp) else [found]
                for option in options:
                    if isinstance(option, ast.Constant) and isinstance(option.value, str):
                        out.setdefault(option.value, f"{path.relative_to(ROOT)}:{node.lineno}")
    return out


@cache
def texts() -> set[str]:
    """Every string constant of the code."""
    return {
        n.value for tree in trees() for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def test_slugs_are_found() -> None:
    assert {"unknown-report-suffix", "data-loss", "internal", "usage"} <= set(in_code())
    assert all(SLUG.fullmatch(slug) for slug in in_code())


def test_every_slug_is_documented() -> None:
    known = set(documented())
    missing = {slug: place for slug, place in in_code().items() if slug not in known}
    assert missing == {}


def test_every_documented_slug_is_used() -> None:
    known = texts()
    assert [slug for slug in documented() if slug not in known] == []


def test_no_slug_is_documented_twice_in_one_table() -> None:
    """A slug may be an error in one place and a quality item in another."""
    for part in (ROOT / "docs" / "messages.md").read_text("utf-8").split("\n## ")[1:]:
        slugs = TABLE_ROW.findall(part)
        assert sorted(slugs) == sorted(set(slugs))
