"""Reference agent of A2A 1.0, by the Python SDK's server: `server_py1.py BINDING` serves it until
killed.

Its card offers only that binding: JSONRPC, HTTP+JSON or GRPC; gRPC uses TLS with `--certificate
FOLDER`, which receives the certificate. With `--no-streaming` it declares that it does not stream.
With `--key FILE` its card is signed with a new key, whose public half is written to the file. It
prints the URL of the card, and for gRPC also its origin. The first word of a message selects the
behaviour; see `Agent`.
"""

import asyncio
import json

import reference

from a2a.types import a2a_pb2_grpc

from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Role
from starlette.applications import Starlette


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
    """Signs the card by the SDK; writes the public key to the file as a JWK set."""
    from a2a.utils.signing import create_agent_card_signer
    from cryptography.hazmat.primitives.asymmetric import ec
    from jwt.algorithms import ECAlgorithm

    key = ec.generate_private_key(ec.SECP256R1())
    jwk = ECAlgorithm.to_jwk(key.public_key(), as_dict=True) | {'kid': 'test'}
    with open(key_file, 'w') as file:
        json.dump({'keys': [jwk]}, file)
    return create_agent_card_signer(key, {'alg': 'ES256', 'kid': 'test', 'typ': 'JOSE'})(card)


async def main(how):
    listening, url = reference.listen()
    interface = AgentInterface(url=url, protocol_binding=how.binding, protocol_version='1.0')
    card = AgentCard(
        name='reference',
        description='Does as it is told',
        version='1.0.0',
        capabilities=AgentCapabilities(streaming=how.streaming),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='behave', name='Behave', description='Does as it is told', tags=['test'])],
        supported_interfaces=[interface],
    )
    handler = DefaultRequestHandlerV2(Agent(), InMemoryTaskStore(), card)
    more = []
    if how.binding == 'JSONRPC':
        routes = create_jsonrpc_routes(handler, '/')
    elif how.binding == 'HTTP+JSON':
        card.supported_interfaces[0].url = f'{url}/rest'
        routes = create_rest_routes(handler, path_prefix='/rest')
    else:
        routes = []
        server = reference.Grpc(how.certificate)
        a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server.server)
        await server.server.start()
        card.supported_interfaces[0].url = server.url
        more = [server.origin]
    if how.key:
        card = signed(card, how.key)
    # Last, since it serves a copy of the card.
    app = Starlette(routes=create_agent_card_routes(card) + routes)
    await reference.serve(app, listening, url, *more)


asyncio.run(main(reference.arguments()))
