import json
import unittest
from tempfile import TemporaryDirectory
from types import ModuleType

from a2a_hub import Agent, Cancelled, Card, Denied, Failure, Health, Invalid, Message, Part, TimedOut, agent
from a2a_hub import _agent, build
from a2a_hub._workspace import WasiFiles
from a2a_hub._convert import well_formed
from a2a_hub.testing import ScriptedHost, ScriptedResponse

CARD = Card("t", "tests", "0.1.0").skill("a", "A", "b", examples=["c"])


def made(run):
    return agent(CARD)(run)


class TheEnd(unittest.TestCase):
    def test_what_a_run_returns_is_its_end(self):
        host = ScriptedHost()
        self.assertEqual(host.run(made(lambda ctx, task: task.text), "hello").text, "hello")
        self.assertEqual(host.run(made(lambda ctx, task: None)).state, "completed")
        failed = host.run(made(lambda ctx, task: ctx.fail("no_login", "log in", fix="x login")))
        self.assertEqual((failed.state, failed.metadata), ("failed", {"reason": "no_login", "fix": "x login"}))
        self.assertEqual(host.run(made(lambda ctx, task: ctx.reject("no"))).state, "rejected")
        self.assertIsNone(host.run(made(lambda ctx, task: ctx.reply("hi"))).state)
        parts = host.run(made(lambda ctx, task: [Part(data={"a": 1}), "text"]))
        self.assertEqual((parts.message.data, parts.text), ({"a": 1}, "text"))

    def test_what_is_raised_says_where(self):
        host = ScriptedHost()

        def boom(ctx, task):
            raise TypeError("bad thing")

        with self.assertRaises(Failure) as failed:
            host.run(made(boom))
        self.assertRegex(failed.exception.text, r"^TypeError: bad thing \(at test_agent\.py:\d+\)$")
        self.assertEqual(failed.exception.kind, "internal")
        self.assertEqual(host.logs[0][0], "error")
        with self.assertRaises(Denied) as denied:
            host.run(made(lambda ctx, task: ctx.run("git")))
        self.assertEqual(denied.exception.text, "run `git`: not in the script of the test")

    def test_a_generator_streams(self):
        host = ScriptedHost()

        def words(ctx, task):
            yield from ("a ", "b ")
            return ctx.done("2 words") if task.text else None

        self.assertEqual(host.run(made(words), "x").text, "2 words")
        self.assertEqual(host.artifact("answer"), "a b ")
        self.assertEqual([update.append for update in host.events], [False, True, False])
        self.assertEqual(ScriptedHost().run(made(words)).text, "a b ")

    def test_others_are_found_by_what_is_asked_of_them(self):
        host = ScriptedHost().agent("codex", "fine")

        def run(ctx, task):
            best = ctx.find("review this", tags=["git"], version=">=1")[0]
            return ctx.call(best["id"], "go").text

        self.assertEqual(host.run(made(run)).text, "fine")
        self.assertEqual(host.searches, [{"query": "review this", "tags": ["git"], "version": ">=1"}])

    def test_a_cancelled_task_ends_with_an_exception_that_passes(self):
        host = ScriptedHost().cancel_after(1)
        cleaned = []

        def run(ctx, task):
            try:
                ctx.say("one")
                ctx.say("two")
            finally:
                cleaned.append(True)

        with self.assertRaises(Cancelled):
            host.run(made(run))
        self.assertTrue(cleaned)


class TheWorld(unittest.TestCase):
    def test_streams_gather_small_pieces_and_end_as_the_whole(self):
        host = ScriptedHost()

        def run(ctx, task):
            with ctx.stream("out", name="Out") as out:
                for word in "abcd":
                    out.write(word)

        host.run(made(run))
        told = [(update.artifact.text, update.append, update.last_chunk) for update in host.events]
        self.assertEqual(told, [("a", False, False), ("abcd", False, True)])
        self.assertEqual(host.artifact("out"), "abcd")

    def test_halves_of_a_character_are_sent_together(self):
        host = ScriptedHost()

        def run(ctx, task):
            out = ctx.stream("out")
            for piece in ("party \ud83c", "\udf89 time \ud83d"):
                out.write(piece)
                out.flush()
            out.finish()

        host.run(made(run))
        told = [well_formed(update.artifact.text) for update in host.events]
        self.assertEqual(told, ["party ", "\U0001f389 time ", "party \U0001f389 time \ufffd"])

    def test_programs_line_by_line(self):
        host = ScriptedHost().program("git", stdout="\ufeffone\r\ntwo\nthr\u00e4\r", stderr="hm\n", code=3)

        def run(ctx, task):
            exit = ctx.run("git", "log", 5, env={"LC_ALL": "C"}, input="x")
            with self.assertRaises(Failure) as failed:
                list(ctx.lines("git"))
            return f"{exit.code} {exit.stderr} {exit.stdout.splitlines()} {failed.exception.text}"

        told = host.run(made(run)).text
        self.assertEqual(told, "3 hm ['one', 'two', 'thr\u00e4'] `git` ended with 3: hm")
        [first, _] = host.spawned
        self.assertEqual((first.args, first.env, first.stdin), (["log", "5"], {"LC_ALL": "C"}, "x"))

    def test_answers_over_http(self):
        host = ScriptedHost().respond(ScriptedResponse(json={"a": [1]}, headers={"Content-Type": "application/json"}))
        host.respond(ScriptedResponse(pieces=["event: del", "ta\nid: 7\ndata: x\n\ndata: y\nda", "ta: z\n\ndata: cut"]))
        host.respond(lambda request: ScriptedResponse(404, request.url))

        def run(ctx, task):
            answer = ctx.fetch("https://example.com/a", method="POST", json_body={"q": 1}, headers={"X-A": "1"})
            events = [(event.event, event.data, event.id) for event in ctx.fetch("https://example.com/b").events()]
            missing = ctx.fetch("https://example.com/c")
            return json.dumps([answer.header("content-type"), answer.ok, answer.json(), events, missing.ok, missing.text])

        told = json.loads(host.run(made(run)).text)
        events = [["delta", "x", "7"], ["message", "y\nz", None]]
        self.assertEqual(told, ["application/json", True, {"a": [1]}, events, False, "https://example.com/c"])
        self.assertEqual(json.loads(host.requests[0].body), {"q": 1})

    def test_event_lines_end_with_any_line_ending(self):
        text = "\ufeffdata: a\rdata: b\r\n\r\nid: 1\n\nevent: ping\rdata: c\r\r"
        for cut in range(len(text) + 1):
            pieces = [piece for piece in (text[:cut], text[cut:]) if piece]
            host = ScriptedHost().respond(ScriptedResponse(pieces=pieces))

            def run(ctx, task):
                events = ctx.fetch("https://example.com/a").events()
                return json.dumps([(event.event, event.data, event.id) for event in events])

            told = json.loads(host.run(made(run)).text)
            self.assertEqual(told, [["message", "a\nb", None], ["ping", "c", None]], cut)

    def test_questions_memory_settings_others_and_tools(self):
        host = ScriptedHost().answer("main").setting("model", "m").agent("codex", "fine", artifacts={"notes": "some"})
        host.agent("bad", "no", state="failed").tool("files", "read", {"content": [{"type": "text", "text": "hello"}]})

        def run(ctx, task):
            ctx.remember("k", {"branch": ctx.ask("which?").text})
            review = ctx.call("codex", "review", key="r", timeout=5)
            with self.assertRaises(Failure) as failed:
                ctx.call("bad", "x")
            tool = ctx.call_tool("files", "read", {"path": "a"})["text"]
            return json.dumps(
                [ctx.recall("k"), review.text, review.artifacts, failed.exception.text, tool, ctx.setting("model"), ctx.remembered(), ctx.recall("x", 7)]
            )

        told = json.loads(host.run(made(run)).text)
        self.assertEqual(told, [{"branch": "main"}, "fine", {"notes": "some"}, "`bad` ended as failed: no", "hello", "m", ["k"], 7])
        self.assertEqual(host.asked[0].text, "which?")

    def test_a_step_that_was_done_is_not_done_again_and_fails_as_it_did(self):
        host, done = ScriptedHost(), []

        def refuse():
            raise Denied("no")

        def run(ctx, task):
            count = ctx.step("count", lambda: done.append(1) or len(done))
            told = []
            for key, work in (("fail", refuse), ("large", lambda: "x" * (2 << 20))):
                try:
                    ctx.step(key, work)
                except Failure as failed:
                    told.append(failed.kind)
            return f"{count} {told}"

        for _ in range(2):
            self.assertEqual(host.run(made(run)).text, "1 ['denied', 'exhausted']")

    def test_progress_sleep_and_limits_of_memory(self):
        host = ScriptedHost().memory_bytes(10)

        def run(ctx, task):
            ctx.progress(40.4, "some")
            ctx.sleep(1.5)
            ctx.remember("k", "x" * 100)

        with self.assertRaises(Failure):
            host.run(made(run))
        self.assertEqual((host.events[0].metadata, host.slept), ({"progress": {"percent": 40}}, [1500]))


class TheAgent(unittest.TestCase):
    def test_it_is_a_function_or_a_class(self):
        class Mine(Agent):
            card = CARD

            def run(self, ctx, task):
                return "mine"

            def health(self, ctx):
                raise ValueError("no model")

        host = ScriptedHost()
        self.assertEqual(host.run(Mine).text, "mine")
        self.assertRegex(host.health(Mine).detail, r"^ValueError: no model \(at test_agent\.py:\d+\)$")
        function = made(lambda ctx, task: "x")
        function.on_health(lambda ctx: Health("degraded", "slow"))
        self.assertEqual(host.health(function).status, "degraded")
        module = ModuleType("mod")
        with self.assertRaisesRegex(TypeError, "has 0 agents"):
            _agent.find(module)
        module.it = function
        self.assertIs(_agent.find(module), function)

    def test_what_it_has_in_mind_is_kept_and_handed_over(self):
        @made
        def run(ctx, task):
            memory = ctx.memory
            memory.goal = "ship"
            memory.add_thought("the cache is warm")
            memory.private.add_thought("mine")
            memory.decide("database", "sqlite", "one file")
            memory.decide("database", "postgres")
            memory.set_var("depth", 3)
            memory.private.set_var("key", "k")
            memory.remember("fact1", {"info": "details"})
            memory.remember("eventA", {"action": "interacted"}, "episodic")
            found = [item["id"] for item in memory.recall("any details?")]
            ctx.start("coder", "go", inherit_working_memory=True, inherit_memory="cache", memory_scope="minimal", memory_bytes=100)
            memory.drop_var("key")
            memory.forget("eventA")
            return f"{memory.goal} {memory.decisions[0]['value']} {memory.vars} {found} {len(memory.thoughts)} {len(memory.recall())}"

        host = ScriptedHost().agent("coder", "done")
        self.assertEqual(host.run(run).text, "ship postgres {'depth': 3} ['fact1'] 2 1")
        self.assertEqual(host.mind.working["thoughts"][1], {"content": "mine", "private": True})
        self.assertNotIn("privateVariables", host.mind.working)

    def test_messages_at_work_are_read_and_sent(self):
        @agent(CARD)
        def run(ctx, task):
            call = ctx.start("coder", "go")
            call.send(ctx.next_message().text)
            try:
                return ctx.next_message(timeout=1)
            except TimedOut:
                return "no more"

        host = ScriptedHost().agent("coder", "done").message("faster")
        self.assertEqual(host.run(run).text, "no more")
        self.assertEqual([(who, message.text) for who, message in host.sent], [("coder", "faster")])

    def test_rule_answers_before_client(self):
        @agent(CARD)
        def run(ctx, task):
            by_rule, denied, asked = (ctx.request_permission({"vendor": "mine", "request": it}, f"{it}?") for it in ("ls", "npm", "rm"))
            self.assertEqual((ctx.permission_denial({"request": "npm"}), ctx.permission_denial({"request": "rm"})), ("use pnpm", None))
            return f"{by_rule.allowed_by} {denied.denied} {asked.answer.text}"

        host = ScriptedHost().rule("ls").rule("npm", denied="use pnpm").answer("yes")
        self.assertEqual(host.run(run).text, "ls use pnpm yes")
        self.assertEqual([prompt.text for prompt in host.asked], ["rm?"])

    def test_a_child_works_in_a_worktree(self):
        @agent(CARD)
        def run(ctx, task):
            first = ctx.start("coder", "go", worktree=True)
            asked = Message([Part(text="go")], "user", metadata={"permissions": "edit"})
            ctx.start("coder", asked, worktree={"task": first.task_id})
            ctx.start("coder", asked)
            return asked.metadata["permissions"]

        host = ScriptedHost().agent("coder", "done")
        self.assertEqual(host.run(run).text, "edit")
        told = [message.metadata for _, message in host.calls]
        of_first = {"permissions": "edit", "worktree": {"task": "task-of-coder"}}
        self.assertEqual(told, [{"worktree": True}, of_first, {"permissions": "edit"}])

    def test_a_card_is_a2a_json(self):
        card = json.loads(CARD.to_json())
        self.assertEqual(card["skills"], [{"id": "a", "name": "A", "description": "b", "tags": [], "examples": ["c"]}])
        self.assertEqual(card["defaultInputModes"], ["text/plain"])

    def test_a_skill_says_what_it_takes(self):
        schema = {"type": "object", "required": ["article"]}
        card = json.loads(Card("t", "tests", "0.1.0").skill("a", "A", "b", input_schema=schema).to_json())
        self.assertEqual(card["skills"][0]["inputSchema"], schema)
        with self.assertRaises(TypeError):
            agent(lambda ctx, task: None)


class TheWorkspace(unittest.TestCase):
    def test_files_are_read_written_and_listed(self):
        host = ScriptedHost().grant_workspace({"README.md": "hello", "src/a.py": ""})

        def run(ctx, task):
            ctx.workspace.write("notes/today.md", ctx.workspace.read("/workspace/README.md"))
            return " ".join(ctx.workspace.list() + ctx.workspace.list("src"))

        self.assertEqual(host.run(made(run)).text, "README.md notes/ src/ a.py")
        self.assertEqual(host.workspace["notes/today.md"], b"hello")
        for path in ("other.md", "../secret"):
            with self.assertRaises(Invalid):
                host.run(made(lambda ctx, task: ctx.workspace.read(path)))
        with self.assertRaises(Denied):
            ScriptedHost().run(made(lambda ctx, task: ctx.workspace.read("README.md")))
        with self.assertRaises(Denied):
            ScriptedHost().grant_workspace({}, read_only=True).run(made(lambda ctx, task: ctx.workspace.write("x", "y")))

    def test_files_of_a_component_are_those_of_python(self):
        with TemporaryDirectory() as folder:
            files = WasiFiles(folder)
            files.write("a/b.md", b"hello")
            self.assertEqual((files.read("a/b.md"), files.list(""), files.list("a")), (b"hello", ["a/"], ["b.md"]))
            with self.assertRaises(Invalid):
                files.read("a")
            with self.assertRaises(Invalid):
                files.read("none")
        with self.assertRaises(Denied):
            WasiFiles(f"{folder}/none").read("x")


class TheBuild(unittest.TestCase):
    def test_a_custom_section_is_counted_as_webassembly_does(self):
        self.assertEqual(build.custom_section(b"ab", b"c"), b"\0\x04\x02abc")
        long = build.custom_section(b"ab", b"x" * 300)
        self.assertEqual(long[:3], bytes([0, (303 & 0x7F) | 0x80, 303 >> 7]))


if __name__ == "__main__":
    unittest.main()
