"""The manifest of an export, and the folder that it describes."""

import fnmatch
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, Literal, get_args

from moie.errors import FileError
from moie.files import as_json, check_replaceable, parse_json, read_bytes, reading

Target = Literal["c", "onnx", "python", "javascript"]
TARGETS: tuple[Target, ...] = get_args(Target)
MANIFEST = "export.json"
DIGEST = "sha256"
FORMAT, VERSION = "moie-export", 2
VERSIONS = (1, VERSION)
"""Versions that are read. Exports of the first one give NaN where they now give a safe action."""
LARGEST = 2**28
"""Bytes of a file of an export."""
LEFT = ("a.out", "*.o", "__pycache__")
"""What running the test vectors by hand leaves in the folder."""


def digest_of(manifest: dict[str, Any]) -> str:
    """SHA-256 of a manifest without its own digest."""
    rest = {name: value for name, value in manifest.items() if name != DIGEST}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def manifest_of(facts: dict[str, Any], files: dict[str, bytes]) -> bytes:
    """The manifest of these files, with what is known of the export."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    manifest = {"format": FORMAT, "version": VERSION, **facts, "files": digests}
    return as_json(manifest | {DIGEST: digest_of(manifest)})


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest, and the files that it names, which must be as they were written; FileError if
    the folder is not an export, or was damaged or changed."""
    if not (folder / MANIFEST).exists():
        raise FileError(f"{folder} is not an export: there is no {MANIFEST} in it")
    with reading(f"{folder / MANIFEST} cannot be read"):
        manifest = parse_json(read_bytes(folder / MANIFEST, LARGEST))
        _check(manifest)
    files = {}
    for name, digest in manifest["files"].items():
        with reading(f"{folder / name} cannot be read"):
            content = read_bytes(folder / name, LARGEST)
        if hashlib.sha256(content).hexdigest() != digest:
            raise FileError(f"{folder / name} does not match {MANIFEST}: it was damaged or changed")
        files[name] = content
    return manifest, files


def _check(manifest: Any) -> None:
    """ValueError unless it is a manifest as `manifest_of` writes them."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError("it was not written by moie")
    if manifest.get("version") not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        raise ValueError(f"its version is {manifest.get('version')!r}, this moie reads {known}")
    if manifest.get(DIGEST) != digest_of(manifest):
        raise ValueError("its content does not match its digest: it was damaged or changed")
    if manifest.get("target") not in TARGETS:
        known = ", ".join(TARGETS)
        raise ValueError(f"its target is {manifest.get('target')!r}, expected one of {known}")
    for name in ("name", "policy"):
        if not re.fullmatch(r"[A-Za-z0-9_]+", str(manifest[name])):
            raise ValueError(f"its {name} is {manifest[name]!r}, expected letters and digits")
    if not isinstance(manifest["files"], dict):
        raise ValueError("its files are not names and digests")
    for name in manifest["files"]:
        if name != os.path.basename(name) or name.startswith("."):
            raise ValueError(f"it names the file {name!r}, expected one of the same folder")


def check_free(folder: Path) -> None:
    """FileError unless nothing is there, or an export with nothing in it that would be missed: no
    file that a person has added or changed."""
    check_replaceable(folder, (MANIFEST,), "an export")
    if not (folder / MANIFEST).exists():
        return
    try:
        known, _ = read_folder(folder)
    except FileError as error:
        raise FileError(f"{error}; delete the folder, or choose another --out") from error
    for name in sorted(set(os.listdir(folder)) - {MANIFEST, *known["files"]}):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in LEFT):
            raise FileError(
                f"{folder} holds {name!r}, which is not part of the export there: move it "
                "elsewhere, or choose another --out"
            )
