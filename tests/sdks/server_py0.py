"""A reference agent of A2A 0.3, by the Python SDK's server: `server_py0.py` prints its URL and serves until it is ended.

It speaks JSON-RPC at its URL and REST below `/rest/v1`, and does what the first word of a message says; see `Agent`.
"""

import asyncio
import socket

import uvicorn

from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TextPart
from a2a.utils import new_agent_text_message, new_task
from starlette.routing import Mount


def text(of):
    return [Part(root=TextPart(text=of))]


class Agent(AgentExecutor):
    """Does as it is told:

    reply TEXT    answers with a message
    tick N MS     tells N pieces of an artifact, one every MS milliseconds
    ask           asks for a word, and completes with it
    fail, reject  ends so
    """

    async def execute(self, context, event_queue):
        word, _, rest = context.get_user_input().partition(' ')
        if context.current_task is None:
            if word == 'reply':
                await event_queue.enqueue_event(new_agent_text_message(rest))
                return
            await event_queue.enqueue_event(new_task(context.message))
        task = TaskUpdater(event_queue, context.task_id, context.context_id)

        def said(of):
            return task.new_agent_message(text(of))

        if context.current_task is not None:
            await task.complete(said(context.get_user_input()))
        elif word == 'tick':
            times, pace = map(int, rest.split())
            await task.start_work()
            for n in range(1, times + 1):
                piece = text(f'{n}\n')
                await task.add_artifact(piece, artifact_id='tick', append=n > 1, last_chunk=n == times)
                await asyncio.sleep(pace / 1000)
            await task.complete(said(f'ticked {times} times'))
        elif word == 'ask':
            await task.requires_input(said('what do you say?'), final=True)
        elif word == 'fail':
            await task.failed(said('failed, as told'))
        else:
            await task.reject(said('not today'))

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main():
    listening = socket.create_server(('127.0.0.1', 0))
    url = f'http://127.0.0.1:{listening.getsockname()[1]}'
    card = AgentCard(
        name='reference',
        description='Does as it is told',
        version='1.0.0',
        url=url,
        preferred_transport='JSONRPC',
        additional_interfaces=[AgentInterface(url=f'{url}/rest', transport='HTTP+JSON')],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='behave', name='Behave', description='Does as it is told', tags=['test'])],
    )
    handler = DefaultRequestHandler(Agent(), InMemoryTaskStore())
    app = A2AStarletteApplication(card, handler).build()
    app.routes.append(Mount('/rest', A2ARESTFastAPIApplication(card, handler).build()))
    print(url, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level='warning')).run([listening])


main()
