"""Client by the official SDK that prints an agent's events as they arrive: `client.py URL
WORDS...`.
"""

import asyncio
import sys
import uuid

from a2a.client import ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import get_artifact_text, get_message_text
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, TaskState


async def main(url, *words):
    client = await ClientFactory(ClientConfig(streaming=True)).create_from_url(url)
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=' '.join(words))])
    async for told in client.send_message(SendMessageRequest(message=message)):
        match told.WhichOneof('payload'):
            case 'task':
                print('task', told.task.id, 'is', TaskState.Name(told.task.status.state))
            case 'message':
                print(get_message_text(told.message))
            case 'status_update':
                status = told.status_update.status
                print(TaskState.Name(status.state) + ':', get_message_text(status.message))
            case 'artifact_update':
                print(get_artifact_text(told.artifact_update.artifact))


asyncio.run(main(*sys.argv[1:]))
