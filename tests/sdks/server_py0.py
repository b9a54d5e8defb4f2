"""Reference agent of A2A 0.3, by the Python SDK's server: `server_py0.py BINDING` serves it until
killed.

Its card offers only that binding: JSONRPC, HTTP+JSON or GRPC. With `--no-streaming` it does not
stream, without declaring so. It prints the URL of the card, and for gRPC also its origin. The first
word of a message selects the behaviour; see `Agent`.
"""

import asyncio

import reference

from a2a.grpc import a2a_pb2_grpc

from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_agent_text_message, new_task
from starlette.routing import Mount


def text(of):
    return [Part(root=TextPart(text=of))]


class Agent(AgentExecutor):
    """Behaves as the message says:

    reply TEXT    answers with a message
    tick N MS     emits N chunks of an artifact, one every MS milliseconds
    ask           asks a question, and completes with the answer
    fail, reject  ends in that state
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


async def main(how):
    listening, url = reference.listen()
    card = AgentCard(
        name='reference',
        description='Does as it is told',
        version='1.0.0',
        url=url,
        preferred_transport=how.binding,
        capabilities=AgentCapabilities(streaming=how.streaming or None),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='behave', name='Behave', description='Does as it is told', tags=['test'])],
    )
    handler = DefaultRequestHandler(Agent(), InMemoryTaskStore())
    more = []
    if how.binding == 'HTTP+JSON':
        card.url = f'{url}/rest'
    elif how.binding == 'GRPC':
        server = reference.Grpc()
        a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(card, handler), server.server)
        await server.server.start()
        card.url = server.url
        more = [server.origin]
    app = A2AStarletteApplication(card, handler).build()
    app.routes.append(Mount('/rest', A2ARESTFastAPIApplication(card, handler).build()))
    await reference.serve(app, listening, url, *more)


asyncio.run(main(reference.arguments()))
