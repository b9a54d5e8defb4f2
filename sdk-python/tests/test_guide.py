import re
import unittest
from pathlib import Path
from types import ModuleType

from a2a_hub.testing import ScriptedHost, ScriptedResponse

GUIDE = Path(__file__).parents[2] / "docs" / "GUESTS.md"


class TheGuide(unittest.TestCase):
    def test_its_agent_does_what_it_says(self):
        [source] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
        module = ModuleType("guide")
        exec(compile(source, "guide.py", "exec"), vars(module))
        host = ScriptedHost().answer("main").program("git", stdout="a1 one\nb2 two\n").respond(ScriptedResponse(json=["news"]))
        host.agent("codex", "fine").agent("gemini", "good")
        self.assertEqual(host.run(module).text, "1 times: ['news'] ['fine', 'good']")
        self.assertEqual(host.artifact("log"), "a1 one\nb2 two\n")
        self.assertEqual((host.said, host.spawned[0].args), (["reading the log"], ["log", "--oneline", "--", "main"]))


if __name__ == "__main__":
    unittest.main()
