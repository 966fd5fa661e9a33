#!/usr/bin/env python3
"""Checks the rules of the tree that a compiler does not: layers, forbidden calls, file sizes, paths.

  tools/check_layers.py [--sizes]     one line per violation, exit 1 if there is one; --sizes lists long files too

The table below is the definition of the layers that ARCHITECTURE.md describes.
"""
import argparse
import os
import re
import sys

# A folder of src/ may include its own headers and those of the folders named here. Written out rather than computed
# from levels, because some layers see less than everything below them: text knows strings and ids, not tensors.
BELOW_KERNELS = {"base", "platform", "tensor"}
BELOW_BACKEND = BELOW_KERNELS | {"kernels", "formats", "text"}
BELOW_ENGINE = BELOW_BACKEND | {"backend", "model"}
BELOW_MEASURE = BELOW_ENGINE | {"engine", "quality"}
BELOW_SERVER = BELOW_MEASURE | {"measure", "batch"}
ALLOWED = {
    "base": set(),
    "platform": {"base"},
    "tensor": {"base", "platform"},
    "kernels": BELOW_KERNELS,
    "formats": BELOW_KERNELS,
    "text": {"base"},
    "backend": BELOW_BACKEND,
    "model": BELOW_BACKEND | {"backend"},
    "engine": BELOW_ENGINE,
    "quality": BELOW_ENGINE | {"engine"},
    "measure": BELOW_MEASURE,
    "batch": BELOW_MEASURE,
    "server": BELOW_SERVER,
    "tune": BELOW_SERVER,
    "cli": BELOW_SERVER | {"server", "tune"},
}

# Tests of these read real files of one another: a tokenizer is tested on the vocabularies of GGUF files.
SIBLINGS_IN_TESTS = {"kernels", "formats", "text"}

SOFT_LINES, HARD_LINES = 500, 800
SOURCE_DIRS = ("src", "tests", "fuzz", "bench", "tools", "scripts")
SOURCE_EXTENSIONS = (".cc", ".h", ".inc", ".py", ".sh", ".mjs")
TEXT_EXTENSIONS = SOURCE_EXTENSIONS + (".md", ".txt", ".cmake", ".json", ".jinja")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
INTRINSICS = re.compile(r"^(?:[a-z0-9]*mmintrin|immintrin|x86intrin|amxtileintrin|arm_neon|arm_sve|arm_acle)\.h$")
INTRINSICS_HOME = re.compile(r"^src/kernels/[a-z0-9]+/")
# (what, pattern, where it may stand)
FORBIDDEN_CALLS = [
    ("writing to stdout", re.compile(r"std::cout|\bstdout\b|\bSTDOUT_FILENO\b|(?<![\w.>])(?:std::)?(?:printf|puts|putchar)\s*\("
                                     r"|\bstd::print(?:ln)?\s*\(|\bfmt::print(?:ln)?\s*\(\s*(?!stderr)"), ("src/cli/",)),
    ("ending the process", re.compile(r"(?<![\w.>])(?:std::)?(?:_?exit|_Exit|quick_exit|abort|terminate)\s*\("),
     ("src/cli/", "src/base/check.h")),
    ("reading the environment", re.compile(r"\b(?:secure_)?getenv\s*\("),
     # platform knows where XDG says caches live; no other layer may depend on the caller's environment.
     ("src/cli/", "src/platform/")),
    ("a marker of unfinished work", re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b"), ()),
]
MACHINE_PATH = re.compile(r"(?<![\w.~*])/(?:home|root|work|farm|mnt|Users)/\w")


def strip_comments_and_strings(text):
    """Blanks comments, string and character literals, keeping the line structure."""
    token = re.compile(
        r'R"(?P<raw>[^()\s\\]*)\(.*?\)(?P=raw)"'
        r'|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'"
        r"|//[^\n]*|/\*.*?\*/", re.S)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def walk(root, folders, extensions):
    for folder in folders:
        for where, dirs, files in os.walk(os.path.join(root, folder)):
            dirs[:] = sorted(d for d in dirs if d not in ("__pycache__", "corpus", "node_modules"))
            for name in sorted(files):
                if name.endswith(extensions):
                    path = os.path.join(where, name)
                    yield os.path.relpath(path, root), path


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


class Checker:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.long_files = []
        self.includes = {}  # folder of src/ -> {included folder: first place}

    def problem(self, path, line, message):
        self.problems.append(f"{path}:{line}: {message}")

    def check_sources(self):
        for rel, path in walk(self.root, SOURCE_DIRS, SOURCE_EXTENSIONS):
            text = read(path)
            lines = text.count("\n")
            if lines > HARD_LINES:
                self.problem(rel, lines, f"{lines} lines, more than {HARD_LINES}: split it by concept")
            elif lines > SOFT_LINES:
                self.long_files.append((lines, rel))
            if not rel.endswith((".cc", ".h", ".inc")):
                continue
            for number, line in enumerate(text.split("\n"), 1):
                if not line.isascii():
                    self.problem(rel, number, "not ASCII")
            self.check_includes(rel, text)
            if rel.startswith("src/"):
                self.check_calls(rel, text)

    def check_includes(self, rel, text):
        parts = rel.split("/")
        # A test sees what the layer it mirrors sees, and the layer; a fuzzer or a benchmark sees any layer.
        layer = parts[1] if parts[0] in ("src", "tests") else None
        if parts[0] == "src" and layer not in ALLOWED:
            self.problem(rel, 1, f"src/{layer} is not in the table of layers of tools/check_layers.py")
            return
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            quoted, name = match.group(1) == '"', match.group(2)
            if INTRINSICS.match(name) and not INTRINSICS_HOME.match(rel):
                if parts[0] == "src":
                    self.problem(rel, line, f"<{name}>: intrinsics belong to src/kernels/<isa>/ and src/kernels/shared/")
            if name == "iostream" and parts[0] == "src" and layer != "cli":
                self.problem(rel, line, "<iostream>: only src/cli prints")
            if not quoted:
                continue
            if ".." in name.split("/"):
                self.problem(rel, line, f'"{name}": include from the top of src/, without ..')
                continue
            target = name.split("/")[0]
            if target not in ALLOWED or layer not in ALLOWED:
                continue
            allowed = ALLOWED[layer]
            if parts[0] == "tests" and layer in SIBLINGS_IN_TESTS:
                allowed = allowed | SIBLINGS_IN_TESTS | BELOW_KERNELS
            if target != layer and target not in allowed:
                self.problem(rel, line, f'"{name}": {layer} may include only {", ".join(sorted(allowed)) or "nothing"}')
            if parts[0] == "src" and target != layer:
                self.includes.setdefault(layer, {}).setdefault(target, f"{rel}:{line}")

    def check_calls(self, rel, text):
        code = strip_comments_and_strings(text)
        for what, pattern, homes in FORBIDDEN_CALLS:
            if rel.startswith(homes) if homes else False:
                continue
            subject = text if not homes else code
            for match in pattern.finditer(subject):
                line = subject.count("\n", 0, match.start()) + 1
                where = f", which belongs to {' and '.join(homes)}" if homes else ""
                self.problem(rel, line, f"'{match.group(0).strip()}' is {what}{where}")

    def check_cmake(self):
        """frontier_library's DEPENDS obey the table and cover what the folder includes."""
        depends = {}
        for layer in ALLOWED:
            path = os.path.join(self.root, "src", layer, "CMakeLists.txt")
            if not os.path.exists(path):
                continue
            text = re.sub(r"#[^\n]*", "", read(path))
            depends[layer] = set(re.findall(r"\bfrontier_([a-z]+)\b(?!\s*\()", text)) & set(ALLOWED) - {layer}
        for layer, direct in depends.items():
            where = f"src/{layer}/CMakeLists.txt"
            for other in sorted(direct - ALLOWED[layer]):
                self.problem(where, 1, f"frontier_{layer} links frontier_{other}, which is not below it")
            reached, queue = set(), list(direct)
            while queue:
                other = queue.pop()
                if other not in reached:
                    reached.add(other)
                    queue.extend(depends.get(other, ALLOWED.get(other, ())))
            for target, place in sorted(self.includes.get(layer, {}).items()):
                if target in ALLOWED[layer] and target in depends and target not in reached:
                    self.problem(where, 1, f"{place} includes {target}, but frontier_{layer} does not link frontier_{target}")

    def check_paths(self):
        tops = [name for name in sorted(os.listdir(self.root)) if os.path.isfile(os.path.join(self.root, name))]
        files = [(name, os.path.join(self.root, name)) for name in tops]
        files += list(walk(self.root, SOURCE_DIRS + ("docs", ".ci", "cmake"), TEXT_EXTENSIONS + ("run", "CMakeLists.txt")))
        for rel, path in files:
            # Data is other people's text.
            if os.path.getsize(path) > 4 << 20 or rel.startswith("tests/golden/") or "/data/" in rel:
                continue
            for number, line in enumerate(read(path).split("\n"), 1):
                match = MACHINE_PATH.search(line)
                if match:
                    self.problem(rel, number, f"'{match.group(0)}...' is a path of one machine")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                        help="the tree to check (default: the one this file is in)")
    parser.add_argument("--sizes", action="store_true", help=f"also list files over {SOFT_LINES} lines")
    options = parser.parse_args()
    checker = Checker(options.root)
    checker.check_sources()
    checker.check_cmake()
    checker.check_paths()
    if options.sizes:
        for lines, rel in sorted(checker.long_files, reverse=True):
            print(f"{rel}: {lines} lines, over the soft limit of {SOFT_LINES}")
    for line in checker.problems:
        print(line)
    if checker.problems:
        print(f"{len(checker.problems)} violations", file=sys.stderr)
    return 1 if checker.problems else 0


if __name__ == "__main__":
    sys.exit(main())
