import unittest

import agent
from a2a_hub.testing import ScriptedHost


class Notes(unittest.TestCase):
    def setUp(self):
        self.host = ScriptedHost()

    def test_it_keeps_and_lists(self):
        self.assertEqual(self.host.run(agent, "note buy milk").text, "kept; that makes 1")
        self.host.run(agent, "note call mum")
        self.assertEqual(self.host.run(agent, "list").text, "2 notes")
        self.assertEqual(self.host.artifact("notes"), "1. buy milk\n2. call mum\n")

    def test_it_asks_before_it_forgets(self):
        self.host.run(agent, "note buy milk")
        self.assertEqual(self.host.answer("no").run(agent, "forget").text, "kept them all")
        self.assertEqual(self.host.answer("yes").run(agent, "forget").text, "forgotten")
        self.assertEqual(self.host.asked[0].text, "Forget 1 notes?")
        self.assertEqual(self.host.memory, {})

    def test_it_rejects_what_it_does_not_know(self):
        self.assertEqual(self.host.run(agent, "dance").state, "rejected")


if __name__ == "__main__":
    unittest.main()
