"""tools/check_layers.py finds each kind of violation, and nothing in a clean tree."""
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "check_layers.py")

CLEAN = {
    "src/base/CMakeLists.txt": "frontier_library(base a.cc)\n",
    "src/base/a.h": "#pragma once\n",
    "src/text/CMakeLists.txt": "frontier_library(text t.cc DEPENDS frontier_base)\n",
    "src/text/t.cc": '#include "base/a.h"\n// printf("in a comment") and "exit(" in a string\nauto s = "exit(1)";\n',
    "src/kernels/avx2/k.cc": "#include <immintrin.h>\n",
    "src/cli/main.cc": '#include "text/t.h"\nint main() { printf("x"); exit(0); }\n',
    "README.md": "see docs/{}/x and https://example.org/{}/x\n".format("work", "home"),
}


def check(changes):
    with tempfile.TemporaryDirectory() as root:
        for name, content in {**CLEAN, **changes}.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        done = subprocess.run([sys.executable, TOOL, "--root", root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


class CheckLayers(unittest.TestCase):
    def test_clean_tree_passes(self):
        self.assertEqual(check({}), (0, ""))

    def test_each_violation_is_found(self):
        slash = "/"
        cases = [
            ({"src/base/b.cc": '#include "text/t.h"\n'}, "src/base/b.cc:1:", "base may include only"),
            ({"src/formats/f.h": '#include "text/t.h"\n'}, "src/formats/f.h:1:", "formats may include only"),
            ({"tests/base/b_test.cc": '#include "text/t.h"\n'}, "tests/base/b_test.cc:1:", "base may include only"),
            ({"src/model/m.cc": "\n#include <immintrin.h>\n"}, "src/model/m.cc:2:", "intrinsics belong"),
            ({"src/text/p.cc": "void f() { std::cout << 1; }\n"}, "src/text/p.cc:1:", "writing to stdout"),
            ({"src/text/p.cc": 'void f() { fmt::print("x"); }\n'}, "src/text/p.cc:1:", "writing to stdout"),
            ({"src/text/p.cc": "#include <iostream>\n"}, "src/text/p.cc:1:", "only src/cli prints"),
            ({"src/text/p.cc": "void f() { std::exit(1); }\n"}, "src/text/p.cc:1:", "ending the process"),
            ({"src/text/p.cc": 'auto x = std::getenv("A");\n'}, "src/text/p.cc:1:", "reading the environment"),
            ({"src/text/p.cc": "// TO" + "DO later\n"}, "src/text/p.cc:1:", "unfinished work"),
            ({"src/text/p.cc": '#include "../base/a.h"\n'}, "src/text/p.cc:1:", "without .."),
            ({"src/other/p.cc": "\n"}, "src/other/p.cc:1:", "not in the table"),
            ({"src/text/p.cc": "// caf\u00e9\n"}, "src/text/p.cc:1:", "not ASCII"),
            ({"src/text/p.cc": "\n" * 801}, "src/text/p.cc:801:", "split it by concept"),
            ({"README.md": f"\nrun {slash}home/someone/x\n"}, "README.md:2:", "path of one machine"),
            ({"src/text/CMakeLists.txt": "frontier_library(text t.cc)\n"}, "src/text/CMakeLists.txt:1:",
             "does not link frontier_base"),
            ({"src/base/CMakeLists.txt": "frontier_library(base a.cc DEPENDS frontier_text)\n"},
             "src/base/CMakeLists.txt:1:", "not below it"),
        ]
        for changes, place, message in cases:
            with self.subTest(message=message, place=place):
                status, output = check(changes)
                self.assertEqual(status, 1)
                lines = output.splitlines()
                self.assertEqual(len(lines), 1, output)
                self.assertTrue(lines[0].startswith(place), output)
                self.assertIn(message, lines[0])


if __name__ == "__main__":
    unittest.main()
