import unittest

import agent
from a2a_hub import Invalid, Message, Part
from a2a_hub.testing import ScriptedHost

CSV = "city;price\nBern;10\nBasel;20\nBern;30\nZug;\n"


def asking(question, **table):
    return Message([Part(text=question), Part(**table)], "user")


class Tables(unittest.TestCase):
    def setUp(self):
        self.host = ScriptedHost()

    def test_figures_by_group_of_csv(self):
        outcome = self.host.run(agent, asking("mean of price by city", raw=CSV.encode(), media_type="text/csv"))
        self.assertEqual(outcome.text, "| city | mean |\n| --- | --- |\n| Bern | 20.0 |\n| Basel | 20.0 |")
        [made] = [event.artifact for event in self.host.events if hasattr(event, "artifact")]
        self.assertEqual(made.parts[1].data, [{"city": "Bern", "mean": 20.0}, {"city": "Basel", "mean": 20.0}])

    def test_a_summary_of_json_in_the_text(self):
        text = 'what is this?\n[{"a": 1, "b": "x|y"}, {"a": 3, "c": true}]'
        told = self.host.run(agent, text).text
        self.assertIn("| a | number | 2 | 0 | 1 to 3, mean 2.0 |", told)
        self.assertIn("| b | text | 1 | 1 | x\\|y (1) |", told)

    def test_the_next_question_needs_no_table(self):
        self.host.run(agent, asking("summary", raw=CSV.encode(), filename="a.csv"))
        self.assertIn("| all | 60 |", self.host.run(agent, "sum of price").text)
        self.assertEqual(ScriptedHost().run(agent, "sum of price").state, "rejected")

    def test_it_asks_which_column_is_meant(self):
        self.host.answer("price")
        outcome = self.host.run(agent, asking("max cost", data={"city": ["Bern"], "price": [7]}))
        self.assertIn("| all | 7 |", outcome.text)
        self.assertEqual(self.host.asked[0].text, "There is no column `cost`. Which one is meant: city, price?")

    def test_what_is_no_table_is_said(self):
        for wrong in ('x\n[{"a": 1}', "x\n[" * 10, "x\n[1, 2]"):
            with self.assertRaises(Invalid):
                self.host.run(agent, wrong)
        with self.assertRaisesRegex(Invalid, "holds no numbers"):
            self.host.run(agent, asking("sum of city", raw=CSV.encode()))


if __name__ == "__main__":
    unittest.main()
