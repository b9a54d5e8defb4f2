"""Drives an agent with the Python SDK for A2A 0.3: `client_py0.py URL BINDING`."""

import asyncio
import sys
import uuid

import grpc
import httpx

from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TextPart,
)
from a2a.utils.message import get_message_text
from stage import Receiver, refused, same, tell


URL, BINDING = sys.argv[1:3]

# Forms in which each error arrives: its own code, an HTTP status, or a gRPC status.
NOT_FOUND = (-32001, 404, grpc.StatusCode.NOT_FOUND)
NOT_CANCELABLE = (-32002, 400, grpc.StatusCode.FAILED_PRECONDITION)
UNSUPPORTED = (-32004, 400, grpc.StatusCode.FAILED_PRECONDITION)


def text_of(artifact):
    return ''.join(part.root.text for part in artifact.parts)


async def refused_as(call, wanted):
    why = await refused(call, A2AClientJSONRPCError, A2AClientHTTPError, grpc.aio.AioRpcError)
    if isinstance(why, A2AClientJSONRPCError):
        same(why.error.code, wanted[0])
    elif isinstance(why, A2AClientHTTPError):
        same(why.status_code, wanted[1])
    else:
        same(why.code(), wanted[2])


class Driver:
    """Agent, as seen by clients with different settings."""

    def __init__(self):
        self.http = httpx.AsyncClient()
        self.card = None
        self.blocking = self.streaming = self.polling = None

    async def discover(self):
        self.card = await A2ACardResolver(self.http, URL).get_agent_card()
        same(self.card.protocol_version, '0.3.0')
        others = [it.transport for it in self.card.additional_interfaces or []]
        assert BINDING in [self.card.preferred_transport, *others], self.card
        assert self.card.capabilities.streaming and self.card.capabilities.push_notifications
        self.blocking = self.client(streaming=False)
        self.streaming = self.client(streaming=True)
        self.polling = self.client(streaming=False, polling=True)
        return ', '.join([self.card.preferred_transport, *others])

    def client(self, **temper):
        config = ClientConfig(
            httpx_client=self.http,
            supported_transports=[BINDING],
            grpc_channel_factory=grpc.aio.insecure_channel,
            **temper,
        )
        return ClientFactory(config).create(self.card)

    async def all(self, client, text, **of):
        """Collects the results of a message: a message, or a task and its changes."""
        parts = [Part(root=TextPart(text=text))]
        message = Message(message_id=str(uuid.uuid4()), role=Role.user, parts=parts, **of)
        return [event async for event in client.send_message(message)]

    async def task(self, client, text, **of):
        [(task, _)] = await self.all(client, text, **of)
        return task

    async def get(self, task, **how):
        return await self.blocking.get_task(TaskQueryParams(id=task.id, **how))

    async def send_task(self):
        task = await self.task(self.blocking, 'flood 3')
        same(task.status.state, TaskState.completed)
        same([text_of(it) for it in task.artifacts], ['1\n2\n3\n'])
        same(get_message_text(task.history[0]), 'flood 3')
        assert task.context_id, task
        # On REST, this SDK's converter drops the time.
        assert task.status.timestamp or BINDING != 'JSONRPC', task

    async def send_message(self):
        [answer] = await self.all(self.blocking, 'reply hi')
        same((answer.role, get_message_text(answer)), (Role.agent, 'hi'))
        # The agent declares no direct messages: its message completes the task of the stream.
        *_, (task, _) = await self.all(self.streaming, 'reply hi')
        last = task.status.message
        same((last.role, get_message_text(last)), (Role.agent, 'hi'))

    async def non_blocking(self):
        task = await self.task(self.polling, 'tick 15 100')
        assert task.status.state in (TaskState.submitted, TaskState.working), task
        while (task := await self.get(task)).status.state != TaskState.completed:
            await asyncio.sleep(0.05)
        assert text_of(task.artifacts[0]).endswith('14\n15\n'), task

    async def stream(self):
        told = await self.all(self.streaming, 'tick 3 100')
        same(told[0][1], None)
        pieces = [update for _, update in told if isinstance(update, TaskArtifactUpdateEvent)]
        # This SDK appends to the first one.
        same([text_of(it.artifact) for it in pieces[1:]], ['2\n', '3\n'])
        same([bool(it.last_chunk) for it in pieces], [False, False, True])
        same((told[-1][1].final, told[-1][1].status.state), (True, TaskState.completed))
        same(text_of(told[-1][0].artifacts[0]), '1\n2\n3\n')

    async def parts(self):
        if BINDING != 'JSONRPC':
            # On this binding the SDK decodes the bytes of a file as text, which these are not.
            await refused(self.task(self.blocking, 'parts'), UnicodeDecodeError)
            return 'not on this binding'
        task = await self.task(self.blocking, 'parts')
        text, raw, url, data = [it.root for it in task.artifacts[0].parts]
        same((text.kind, raw.kind, url.kind, data.kind), ('text', 'file', 'file', 'data'))
        same((raw.file.bytes, raw.file.name), ('AP8=', 'a.bin'))
        same((url.file.uri, url.file.mime_type), ('https://example.com/a.png', 'image/png'))
        same(data.data['n'][0], 1)
        same(task.artifacts[0].name, 'Parts')

    async def get_task(self):
        task = await self.task(self.blocking, 'flood 1')
        same(len((await self.get(task, history_length=1)).history), 1)
        whole = await self.get(task)
        same((whole.context_id, get_message_text(whole.history[0])), (task.context_id, 'flood 1'))

    async def subscribe(self):
        task = await self.task(self.polling, 'tick 20 100')

        async def listen():
            return [event async for event in self.streaming.resubscribe(TaskIdParams(id=task.id))]

        for told in await asyncio.gather(listen(), listen()):
            last, update = told[-1]
            same((told[0][0].id, last.status.state, update.final), (task.id, TaskState.completed, True))
            assert text_of(last.artifacts[0]).endswith('19\n20\n'), last

    async def push(self):
        receiver, client = Receiver(), self.blocking
        asked = await self.task(client, 'ask')
        wanted = PushNotificationConfig(
            id='mine',
            url=receiver.url,
            token='token',
            authentication=PushNotificationAuthenticationInfo(schemes=['Bearer'], credentials='let-me-in'),
        )
        made = await client.set_task_callback(
            TaskPushNotificationConfig(task_id=asked.id, push_notification_config=wanted)
        )
        same((made.task_id, made.push_notification_config.url), (asked.id, receiver.url))
        got = await client.get_task_callback(
            GetTaskPushNotificationConfigParams(id=asked.id, push_notification_config_id='mine')
        )
        same(got.push_notification_config, wanted)
        await self.task(client, 'blue', task_id=asked.id)
        headers, body = await receiver.wait_for(lambda it: it['status']['state'] == 'completed')
        same((body['kind'], body['id']), ('task', asked.id))
        same((headers['x-a2a-notification-token'], headers['authorization']), ('token', 'Bearer let-me-in'))

        inline = self.client(
            streaming=False, push_notification_configs=[PushNotificationConfig(url=receiver.url)]
        )
        task = await self.task(inline, 'flood 1')
        await receiver.wait_for(lambda it: it['id'] == task.id and it['status']['state'] == 'completed')
        return f'{len(receiver.came)} notifications'

    async def cancel(self):
        task = await self.task(self.polling, 'tick 100 100')
        canceled = await self.blocking.cancel_task(TaskIdParams(id=task.id))
        same((canceled.id, canceled.status.state), (task.id, TaskState.canceled))
        await refused_as(self.blocking.cancel_task(TaskIdParams(id=task.id)), NOT_CANCELABLE)

    async def input_required(self):
        asked = await self.task(self.blocking, 'ask')
        same(asked.status.state, TaskState.input_required)
        same(get_message_text(asked.status.message), 'what do you say?')
        told = await self.all(self.streaming, 'blue', task_id=asked.id, context_id=asked.context_id)
        task, _ = told[-1]
        same((task.id, get_message_text(task.status.message)), (asked.id, 'blue'))
        login = await self.task(self.blocking, 'auth')
        same(login.status.state, TaskState.auth_required)
        login = await self.task(self.blocking, 'me', task_id=login.id)
        same(login.status.state, TaskState.completed)

    async def ends(self):
        for text, state in (('reject', TaskState.rejected), ('fail', TaskState.failed)):
            same((await self.task(self.blocking, text)).status.state, state)

    async def extended_card(self):
        # Only clients with a token have an extended card, and the hub's own user needs no token.
        assert not self.card.supports_authenticated_extended_card
        card = await self.blocking.get_card()
        same((card.name, [it.id for it in card.skills]), (self.card.name, [it.id for it in self.card.skills]))

    async def error_mapping(self):
        client = self.blocking
        await refused_as(client.get_task(TaskQueryParams(id='none')), NOT_FOUND)
        await refused_as(client.cancel_task(TaskIdParams(id='none')), NOT_FOUND)
        over = await self.task(client, 'flood 1')
        await refused_as(self.all(client, 'more', task_id=over.id), UNSUPPORTED)
        await refused_as(self.all(client, 'more', task_id='none'), NOT_FOUND)


async def main():
    it = Driver()
    await tell(
        BINDING,
        [
            it.discover,
            it.send_task,
            it.send_message,
            it.non_blocking,
            it.stream,
            it.parts,
            it.get_task,
            it.subscribe,
            it.push,
            it.cancel,
            it.input_required,
            it.ends,
            it.extended_card,
            it.error_mapping,
        ],
    )


asyncio.run(main())
