import re
import unittest
from pathlib import Path
from types import ModuleType

from a2a_hub.testing import ScriptedHost, ScriptedResponse

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference" / "sdk-python.md"
TESTING = ROOT / "docs" / "how-to" / "test-your-agent.md"
TUTORIAL = ROOT / "docs" / "guide" / "first-agent-python.md"


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)


def module(source: str) -> ModuleType:
    made = ModuleType("guide")
    exec(compile(source, "guide.py", "exec"), vars(made))
    return made


class TheBook(unittest.TestCase):
    def test_first_agent_of_the_reference_does_what_it_says(self):
        host = ScriptedHost().answer("main").program("git", stdout="a1 one\nb2 two\n").respond(ScriptedResponse(json=["news"]))
        host.agent("codex", "fine").agent("gemini", "good")
        self.assertEqual(host.run(module(blocks(REFERENCE)[0])).text, "1 times: ['news'] ['fine', 'good']")
        self.assertEqual(host.artifact("log"), "a1 one\nb2 two\n")
        self.assertEqual((host.said, host.spawned[0].args), (["reading the log"], ["log", "--oneline", "--", "main"]))

    def test_other_agents_of_the_reference_load(self):
        others = blocks(REFERENCE)[1:]
        self.assertGreaterEqual(len(others), 3)
        for source in others:
            module(source)

    def test_example_of_a_test_passes(self):
        [source] = blocks(TESTING)
        tests = unittest.defaultTestLoader.loadTestsFromModule(module(source))
        result = tests.run(unittest.TestResult())
        self.assertTrue(result.wasSuccessful() and result.testsRun == 2, result.failures + result.errors)

    def test_tutorial_shows_the_agent_of_a_new_project(self):
        template = (ROOT / "templates" / "python" / "agent.py").read_text()
        for placeholder, name in (("{{name}}", "notes"), ("{{title}}", "Notes"), ("{{crate}}", "notes")):
            template = template.replace(placeholder, name)
        self.assertEqual(blocks(TUTORIAL)[0], template)


if __name__ == "__main__":
    unittest.main()
