"""The stored renderings of chat templates are those of the Jinja2 that is installed (Debian's python3-jinja2)."""
import os
import subprocess
import unittest

MAKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "text", "make_template_goldens.py")


class TemplateGoldens(unittest.TestCase):
    def test_stored_goldens_are_what_jinja2_gives(self):
        # Debian's own Python: another that comes first in PATH does not see Debian's modules.
        done = subprocess.run(["/usr/bin/python3", MAKER, "--check"], capture_output=True, text=True, check=False)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
