"""A reference agent of A2A 1.0, by the Python SDK's server: `server_py1.py` prints its URL and serves until it is ended.

With `server_py1.py KEY_FILE`, its card is signed with a key that is made for that, whose public half goes to the file.

It speaks JSON-RPC at its URL and REST below `/rest`, and does what the first word of a message says; see `Agent`.
"""

import asyncio
import json
import socket
import sys

import uvicorn

from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Role
from starlette.applications import Starlette


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
                await event_queue.enqueue_event(new_text_message(rest, role=Role.ROLE_AGENT))
                return
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        task = TaskUpdater(event_queue, context.task_id, context.context_id)

        def said(text):
            return task.new_agent_message([Part(text=text)])

        if context.current_task is not None:
            await task.complete(said(context.get_user_input()))
        elif word == 'tick':
            times, pace = map(int, rest.split())
            await task.start_work()
            for n in range(1, times + 1):
                piece = [Part(text=f'{n}\n')]
                await task.add_artifact(piece, artifact_id='tick', append=n > 1, last_chunk=n == times)
                await asyncio.sleep(pace / 1000)
            await task.complete(said(f'ticked {times} times'))
        elif word == 'ask':
            await task.requires_input(said('what do you say?'))
        elif word == 'fail':
            await task.failed(said('failed, as told'))
        else:
            await task.reject(said('not today'))

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def signed(card, key_file):
    """The card, signed by the SDK; the file gets the key that says so, as a JWK set."""
    from a2a.utils.signing import create_agent_card_signer
    from cryptography.hazmat.primitives.asymmetric import ec
    from jwt.algorithms import ECAlgorithm

    key = ec.generate_private_key(ec.SECP256R1())
    jwk = ECAlgorithm.to_jwk(key.public_key(), as_dict=True) | {'kid': 'test'}
    with open(key_file, 'w') as file:
        json.dump({'keys': [jwk]}, file)
    return create_agent_card_signer(key, {'alg': 'ES256', 'kid': 'test', 'typ': 'JOSE'})(card)


def main():
    listening = socket.create_server(('127.0.0.1', 0))
    url = f'http://127.0.0.1:{listening.getsockname()[1]}'
    card = AgentCard(
        name='reference',
        description='Does as it is told',
        version='1.0.0',
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='behave', name='Behave', description='Does as it is told', tags=['test'])],
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding='JSONRPC', protocol_version='1.0'),
            AgentInterface(url=f'{url}/rest', protocol_binding='HTTP+JSON', protocol_version='1.0'),
        ],
    )
    if len(sys.argv) > 1:
        card = signed(card, sys.argv[1])
    handler = DefaultRequestHandlerV2(Agent(), InMemoryTaskStore(), card)
    routes = create_agent_card_routes(card)
    routes += create_jsonrpc_routes(handler, '/')
    routes += create_rest_routes(handler, path_prefix='/rest')
    print(url, flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level='warning')).run([listening])


main()
