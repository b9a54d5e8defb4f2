"""Drives an agent of the hub as an editor: `acp_py.py COMMAND...`, with the ACP server's command."""

import asyncio
import os
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.exceptions import RequestError
from acp.schema import ClientCapabilities
from stage import refused, same, tell


COMMAND = sys.argv[1:]
CWD = os.environ['WORKSPACE']


class Editor:
    """Client whose user answers permissions and forms."""

    def __init__(self):
        self.updates, self.forms = [], []
        self.option = 0
        self.form = {'action': 'cancel'}

    def on_connect(self, _):
        pass

    async def session_update(self, session_id, update, **_):
        self.updates.append((session_id, update))

    async def request_permission(self, options, **_):
        option = options[self.option].option_id
        return {'outcome': {'outcome': 'selected', 'optionId': option}}

    async def create_elicitation(self, message, **_):
        self.forms.append(message)
        return self.form

    def texts(self):
        chunks = [update for _, update in self.updates if update.session_update == 'agent_message_chunk']
        return ''.join(chunk.content.text for chunk in chunks)


class Driver:
    """One agent of the hub, as seen by an editor."""

    def __init__(self, editor, agent):
        self.editor, self.agent = editor, agent

    async def say(self, text):
        self.editor.updates.clear()
        stop = await self.agent.prompt(self.session, [text_block(text)])
        return stop.stop_reason

    async def initialize(self):
        can = ClientCapabilities.model_validate({'elicitation': {'form': {}}})
        hello = await self.agent.initialize(PROTOCOL_VERSION, client_capabilities=can)
        sessions = hello.agent_capabilities.session_capabilities
        same([hello.protocol_version, hello.agent_info.name], [1, 'a2a-hub'])
        same(None in (sessions.list, sessions.resume, sessions.close), False)
        begun = await self.agent.new_session(CWD)
        self.session = begun.session_id

    async def prompted(self):
        same(await self.say('tick 3 50'), 'end_turn')
        same(self.editor.texts().endswith('ticked 3 times'), True)

    async def permission(self):
        for option, wanted in [(0, 'allow'), (1, 'deny')]:
            self.editor.option = option
            same([await self.say('permit'), self.editor.texts()], ['end_turn', wanted])

    async def options(self):
        told = await self.agent.set_config_option('mode', self.session, 'read-only')
        same([option.current_value for option in told.config_options], ['guest', 'read-only'])
        await self.say('setting permissions')
        same(self.editor.texts(), 'read-only')
        await refused(self.agent.set_config_option('mode', self.session, 'full'), RequestError)

    async def form(self):
        self.editor.form = {'action': 'accept', 'content': {'answer': 'blue'}}
        same(await self.say('ask'), 'end_turn')
        same([self.editor.forms, self.editor.texts().endswith('blue')], [['what do you say?'], True])

    async def listed(self):
        listed = await self.agent.list_sessions(cwd=CWD)
        same([(it.session_id, it.title) for it in listed.sessions], [(self.session, 'tick 3 50')])

    async def resumed(self):
        await self.agent.close_session(self.session)
        await refused(self.agent.prompt(self.session, [text_block('hi')]), RequestError)
        await self.agent.resume_session(self.session, CWD)
        same(await self.say('tick 1 1'), 'end_turn')

    async def closed(self):
        self.editor.updates.clear()
        turn = asyncio.ensure_future(self.agent.prompt(self.session, [text_block('tick 300 100')]))
        while not self.editor.texts():
            await asyncio.sleep(0.02)
        await self.agent.close_session(self.session)
        same((await turn).stop_reason, 'cancelled')

    def steps(self):
        return [
            self.initialize,
            self.prompted,
            self.permission,
            self.options,
            self.form,
            self.listed,
            self.resumed,
            self.closed,
        ]


async def main():
    editor = Editor()
    # This version of the SDK counts elicitation as unstable.
    start = spawn_agent_process(lambda _: editor, *COMMAND, use_unstable_protocol=True)
    async with start as (agent, _):
        await tell('python', Driver(editor, agent).steps())


asyncio.run(main())
