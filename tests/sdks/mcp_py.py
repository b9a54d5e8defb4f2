"""Drives the hub as an MCP client: `mcp_py.py MODE HUB WHERE...`, with the URL or command of the
server.

The mode is `legacy`, with a handshake, or `auto`, which detects that none is needed. With `A2A_KEY` in the
environment it sends this key of a person, and to the hub itself the header in `HUB_AUTHORIZATION`.
"""

import asyncio
import json
import os
import sys
import urllib.request

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult
from stage import same, tell


MODE, HUB, *WHERE = sys.argv[1:]

MODERN = MODE == 'auto'
KEY, HUB_AUTHORIZATION = os.environ.get('A2A_KEY'), os.environ.get('HUB_AUTHORIZATION')


def where():
    if WHERE[0].startswith('http'):
        if KEY:
            return streamable_http_client(WHERE[0], http_client=create_mcp_http_client({'authorization': f'Bearer {KEY}'}))
        return WHERE[0]
    return StdioServerParameters(command=WHERE[0], args=WHERE[1:], env=dict(os.environ))


def ask_hub(method, **params):
    """Calls the hub as the operator, outside of MCP."""
    body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}).encode()
    request = urllib.request.Request(HUB, body, {'content-type': 'application/json'})
    if HUB_AUTHORIZATION:
        request.add_header('authorization', HUB_AUTHORIZATION)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def text(result, n=0):
    return result.content[n].text


def fact(result, name):
    return (result.meta or {}).get(f'a2a-hub/{name}')


class Driver:
    """Hub, as seen by a client whose user answers forms, and by one without forms."""

    def __init__(self):
        self.forms, self.heard = [], []
        self.answers = []

    async def run(self):
        async def fill_in(_, params):
            self.forms.append(params)
            return self.answers.pop(0)

        async def hear(message):
            self.heard.append(message)

        asking = Client(where(), mode=MODE, elicitation_callback=fill_in, message_handler=hear)
        async with asking as self.client, Client(where(), mode=MODE) as self.plain:
            names = ['initialize', 'tools', 'call', 'conversation', 'directory', 'progress', 'elicitation', 'permission',
                     'question', 'long', 'cancellation', 'cancel_task', 'list_agents', 'resources', 'errors', 'list_changed']
            try:
                await tell(MODE, [getattr(self, name) for name in names])
            except SystemExit as why:
                # Not through the clients' task groups, which would wrap the error.
                code = why.code
        sys.exit(code)

    async def initialize(self):
        same(self.client.protocol_version, '2026-07-28' if MODERN else '2025-11-25')
        same(self.client.server_info.name, 'a2a-hub')
        assert self.client.server_capabilities.tools.list_changed
        assert 'no instruction' in self.client.instructions
        return self.client.protocol_version

    async def tools(self):
        tools = {tool.name: tool for tool in (await self.client.list_tools()).tools}
        assert {'echo', 'guest', 'list_agents', 'check_task', 'cancel_task', 'answer_task'} <= set(tools), list(tools)
        assert 'The agent says of itself: "' in tools['guest'].description
        same(tools['guest'].input_schema['required'], ['message'])
        assert tools['check_task'].annotations.read_only_hint
        return ', '.join(tools)

    async def call(self):
        result = await self.client.call_tool('guest', {'message': 'parts'})
        assert not result.is_error, result
        same(text(result), 'a text')
        same(fact(result, 'state'), 'completed')
        [link] = [block for block in result.content if block.type == 'resource_link']
        same(link.name, 'Parts')
        answered = await self.client.call_tool('guest', {'message': 'reply hi'})
        same(text(answered), 'hi')

    async def conversation(self):
        first = await self.client.call_tool('guest', {'message': 'tick 1 1'})
        context = fact(first, 'contextId')
        second = await self.client.call_tool('guest', {'message': 'tick 1 1', 'context_id': context})
        same(fact(second, 'contextId'), context)
        assert fact(second, 'taskId') != fact(first, 'taskId')

    async def directory(self):
        """The working directory is that of the program's start, or that of the call."""
        place = os.environ['WORKSPACE']
        said = {'working_directory': place} if WHERE[0].startswith('http') else {}
        made = await self.client.call_tool('guest', {'message': 'tick 1 1', **said})
        [newest] = ask_hub('hub/tasks/list', workingDirectory=place, limit=1)['result']
        same(newest['id'], fact(made, 'taskId'))

    async def progress(self):
        told = []

        async def hear(progress, total, message):
            told.append((progress, message))

        result = await self.client.call_tool('guest', {'message': 'tick 4 300'}, progress_callback=hear)
        same(text(result), '1\n2\n3\n4\n')
        said = ''.join(message for _, message in told)
        assert '1\n' in said and '4\n' in said, told
        assert [n for n, _ in told] == sorted({n for n, _ in told}) and len(told) > 2, told
        return f'{len(told)} notifications'

    async def elicitation(self):
        self.answers = [ElicitResult(action='accept', content={'answer': 'blue'})]
        result = await self.client.call_tool('guest', {'message': 'ask'})
        same((text(result), fact(result, 'state')), ('blue', 'completed'))
        assert self.forms[-1].message.endswith('asks: what do you say?'), self.forms[-1]
        self.answers = [ElicitResult(action='cancel')]
        left = await self.client.call_tool('guest', {'message': 'ask'})
        same((fact(left, 'state'), fact(left, 'questionKind')), ('input-required', 'input'))

    async def permission(self):
        self.answers = [ElicitResult(action='accept', content={'decision': 'allow'})]
        allowed = await self.client.call_tool('guest', {'message': 'permit'})
        same(text(allowed), 'allow')
        same(self.forms[-1].requested_schema['properties']['decision']['enum'], ['allow', 'deny'])
        self.answers = [ElicitResult(action='decline')]
        denied = await self.client.call_tool('guest', {'message': 'permit'})
        same(text(denied), 'deny')

    async def question(self):
        asked = await self.plain.call_tool('guest', {'message': 'ask'})
        same((text(asked), fact(asked, 'state')), ('what do you say?', 'input-required'))
        task, question = fact(asked, 'taskId'), fact(asked, 'questionId')
        still = await self.plain.call_tool('check_task', {'task_id': task})
        same(fact(still, 'questionId'), question)
        wrong = await self.plain.call_tool('answer_task', {'task_id': task, 'message': 'no', 'question_id': 'another'})
        assert wrong.is_error, wrong
        answer = {'task_id': task, 'message': 'green', 'question_id': question}
        answered = await self.plain.call_tool('answer_task', answer)
        same((text(answered), fact(answered, 'state')), ('green', 'completed'))

    async def long(self):
        begun = await self.client.call_tool('guest', {'message': 'tick 3 400', 'wait_seconds': 0})
        assert fact(begun, 'state') in ('submitted', 'working'), begun
        assert 'check_task' in text(begun, -1)
        task = fact(begun, 'taskId')
        same(fact(await self.client.call_tool('check_task', {'task_id': task, 'wait_seconds': 0}), 'taskId'), task)
        done = await self.client.call_tool('check_task', {'task_id': task})
        same((text(done), fact(done, 'state')), ('1\n2\n3\n', 'completed'))

    async def cancellation(self):
        """A cancelled call cancels its task."""
        told = asyncio.Event()

        async def hear(*_):
            told.set()

        call = asyncio.create_task(self.client.call_tool('guest', {'message': 'tick 300 100'}, progress_callback=hear))
        await told.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        for _ in range(100):
            newest = ask_hub('hub/tasks/list', agentId='guest', limit=1)['result'][0]
            if newest['status']['state'] == 'canceled':
                return
            await asyncio.sleep(0.1)
        raise AssertionError(newest['status'])

    async def cancel_task(self):
        begun = await self.client.call_tool('guest', {'message': 'tick 300 100', 'wait_seconds': 0})
        ended = await self.client.call_tool('cancel_task', {'task_id': fact(begun, 'taskId')})
        same((fact(ended, 'state'), ended.is_error), ('canceled', False))

    async def list_agents(self):
        result = await self.client.call_tool('list_agents')
        agents = {agent['id']: agent for agent in result.structured_content['agents']}
        assert agents['guest']['description'].startswith('Behaves as told'), agents
        assert agents['echo']['health'] == 'healthy', agents['echo']

    async def resources(self):
        made = await self.client.call_tool('guest', {'message': 'parts'})
        [link] = [block for block in made.content if block.type == 'resource_link']
        listed = {str(resource.uri) for resource in (await self.client.list_resources()).resources}
        assert str(link.uri) in listed, listed
        contents = (await self.client.read_resource(str(link.uri))).contents
        same([it.mime_type for it in contents], ['text/plain', 'application/octet-stream', 'text/uri-list', 'application/json'])
        same((contents[0].text, contents[1].blob), ('a text', 'AP8='))
        [task] = (await self.client.read_resource(fact(made, 'uri'))).contents
        same(json.loads(task.text)['id'], fact(made, 'taskId'))
        templates = (await self.client.list_resource_templates()).resource_templates
        same(len(templates), 2)

    async def errors(self):
        failed = await self.client.call_tool('guest', {'message': 'fail'})
        same((failed.is_error, fact(failed, 'state')), (True, 'failed'))
        for name, arguments, why in [
            ('guest', {}, 'missing field `message`'),
            ('guest', {'message': ' '}, 'empty'),
            ('check_task', {'task_id': 'none'}, 'none'),
        ]:
            result = await self.client.call_tool(name, arguments)
            assert result.is_error and why in text(result), result
        for call in [
            self.client.call_tool('No Tool', {}),
            self.client.call_tool('guests', {}),
            self.client.call_tool('guests', {'message': 'hi'}),
            self.client.read_resource('a2a-hub://tasks/none'),
            self.client.read_resource('file:///etc/passwd'),
        ]:
            try:
                answer = await call
            except MCPError as why:
                assert str(why), why
            else:
                raise AssertionError(answer)

    async def list_changed(self):
        assert not ask_hub('hub/agents/deregister', agentId='echo').get('error')
        if MODERN:
            async with self.client.listen(tools_list_changed=True) as changes:
                assert not ask_hub('hub/agents/reload', agentId='echo').get('error')
                await anext(aiter(changes))
        else:
            for _ in range(100):
                if any('list_changed' in str(getattr(it, 'method', '')) for it in self.heard):
                    break
                await asyncio.sleep(0.1)
            else:
                raise AssertionError(self.heard)
            tools = {tool.name for tool in (await self.client.list_tools()).tools}
            assert 'echo' not in tools, tools


asyncio.run(Driver().run())
