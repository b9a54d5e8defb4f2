"""Drives an agent with the Python SDK for A2A 1.0: `client_py1.py URL BINDING`.

With `A2A_KEY` in the environment it authenticates by the scheme that the card declares. With `A2A_CA` it trusts
that certificate, and shows those of `A2A_CERT` and `A2A_CERT_KEY`.
"""

import asyncio
import json
import os
import ssl
import sys
import uuid

import grpc
import httpx
import jwt

from a2a.client import A2ACardResolver, AuthInterceptor, ClientConfig, ClientFactory, CredentialService
from a2a.client.client import ClientCallContext
from a2a.helpers.proto_helpers import get_artifact_text, get_message_text
from a2a.types.a2a_pb2 import (
    AgentCard,
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils import errors
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from stage import Receiver, refused, same, tell


URL, BINDING = sys.argv[1:3]
KEY = os.environ.get('A2A_KEY')

# The card needs the key as well, and is read before the scheme is known.
CARD = {'headers': {'Authorization': f'Bearer {KEY}'}} if KEY else {}


CA, CERT, CERT_KEY = (os.environ.get(name) for name in ['A2A_CA', 'A2A_CERT', 'A2A_CERT_KEY'])


def verify():
    """Certificates of HTTP."""
    if not CA:
        return True
    context = ssl.create_default_context(cafile=CA)
    context.load_cert_chain(CERT, CERT_KEY)
    return context


def channel(target):
    """Connection of gRPC, with the same certificates."""
    if not CA:
        return grpc.aio.insecure_channel(target)
    ca, cert, key = (open(path, 'rb').read() for path in [CA, CERT, CERT_KEY])
    return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(ca, key, cert))


class Key(CredentialService):
    """Credential for each scheme of the card."""

    async def get_credentials(self, security_scheme_name, context):
        return KEY


class Driver:
    """Agent, as seen by clients with different settings."""

    def __init__(self):
        self.http = httpx.AsyncClient(verify=verify())
        self.card = None
        self.blocking = self.streaming = self.polling = None

    async def discover(self):
        """Finds the card by the well-known path, and by a known version."""
        self.card = await A2ACardResolver(self.http, URL).get_agent_card(http_kwargs=CARD)
        same(self.card.name, 'test-guests')
        bindings = [it.protocol_binding for it in self.card.supported_interfaces if it.protocol_version == '1.0']
        assert BINDING in bindings, bindings
        assert self.card.capabilities.streaming and self.card.capabilities.push_notifications
        assert self.card.skills[0].tags, self.card
        self.blocking = await self.client(streaming=False)
        self.streaming = await self.client(streaming=True)
        self.polling = await self.client(streaming=False, polling=True)
        return ', '.join(bindings)

    async def client(self, **temper):
        config = ClientConfig(
            supported_protocol_bindings=[BINDING],
            httpx_client=self.http if CA else None,
            grpc_channel_factory=channel,
            **temper,
        )
        interceptors = [AuthInterceptor(Key())] if KEY else []
        return await ClientFactory(config).create_from_url(URL, interceptors=interceptors, resolver_http_kwargs=CARD)

    async def all(self, client, text, configuration=None, **of):
        """Collects the results of a message."""
        message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **of)
        request = SendMessageRequest(message=message, configuration=configuration)
        return [event async for event in client.send_message(request)]

    async def task(self, client, text, **of):
        [answer] = await self.all(client, text, **of)
        assert answer.HasField('task'), answer
        return answer.task

    async def get(self, task, **how):
        return await self.blocking.get_task(GetTaskRequest(id=task.id, **how))

    async def signature(self):
        """Verifies the card with the key that the hub publishes, and no changed card."""
        protected = self.card.signatures[0].protected
        header = json.loads(jwt.utils.base64url_decode(protected))
        published = (await self.http.get(header['jku'])).json()['keys']
        keys = {key['kid']: jwt.PyJWK(key) for key in published}
        verifier = create_signature_verifier(lambda kid, jku: keys[kid], ['EdDSA'])
        verifier(self.card)
        changed = AgentCard()
        changed.CopyFrom(self.card)
        changed.supported_interfaces[0].url = 'https://evil.example'
        try:
            verifier(changed)
        except InvalidSignaturesError:
            return
        raise AssertionError('a changed card is verified')

    async def send_task(self):
        task = await self.task(self.blocking, 'flood 3')
        same(task.status.state, TaskState.TASK_STATE_COMPLETED)
        same([get_artifact_text(it, '') for it in task.artifacts], ['1\n2\n3\n'])
        same(get_message_text(task.history[0]), 'flood 3')
        assert task.context_id and task.status.timestamp.seconds, task

    async def send_message(self):
        [answer] = await self.all(self.blocking, 'reply hi')
        same(get_message_text(answer.message), 'hi')
        same(answer.message.role, Role.ROLE_AGENT)
        # The agent declares no direct messages: its message completes the task of the stream.
        *_, last = await self.all(self.streaming, 'reply hi')
        last = last.status_update.status.message
        same((last.role, get_message_text(last)), (Role.ROLE_AGENT, 'hi'))

    async def non_blocking(self):
        task = await self.task(self.polling, 'tick 5 100')
        assert task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING), task
        while (task := await self.get(task)).status.state != TaskState.TASK_STATE_COMPLETED:
            await asyncio.sleep(0.05)
        same(get_artifact_text(task.artifacts[0], ''), '1\n2\n3\n4\n5\n')

    async def stream(self):
        told = await self.all(self.streaming, 'tick 3 100')
        assert told[0].HasField('task'), told
        pieces = [it.artifact_update for it in told if it.HasField('artifact_update')]
        same([get_artifact_text(it.artifact) for it in pieces], ['1\n', '2\n', '3\n'])
        same([it.last_chunk for it in pieces], [False, False, True])
        same([it.append for it in pieces], [False, True, True])
        same(told[-1].status_update.status.state, TaskState.TASK_STATE_COMPLETED)

    async def parts(self):
        task = await self.task(self.blocking, 'parts')
        artifact = task.artifacts[0]
        same([it.WhichOneof('content') for it in artifact.parts], ['text', 'raw', 'url', 'data'])
        same((artifact.parts[1].raw, artifact.parts[1].filename), (b'\x00\xff', 'a.bin'))
        same((artifact.parts[2].url, artifact.parts[2].media_type), ('https://example.com/a.png', 'image/png'))
        same(artifact.parts[3].data.struct_value['n'][0], 1)
        same((artifact.name, list(artifact.extensions)), ('Parts', ['urn:a2a-hub:test']))

    async def get_task(self):
        task = await self.task(self.blocking, 'flood 1')
        same(len((await self.get(task, history_length=0)).history), 0)
        same(len((await self.get(task, history_length=1)).history), 1)
        whole = await self.get(task)
        same(get_message_text(whole.history[0]), 'flood 1')
        same(whole.context_id, task.context_id)

    async def list_tasks(self):
        context = str(uuid.uuid4())
        ids = [(await self.task(self.blocking, 'flood 1', context_id=context)).id for _ in range(3)]
        found, token = [], ''
        while True:
            page = await self.blocking.list_tasks(
                ListTasksRequest(context_id=context, page_size=2, page_token=token)
            )
            same((page.total_size, page.page_size), (3, 2))
            assert not any(task.artifacts for task in page.tasks), page
            found += [task.id for task in page.tasks]
            if not (token := page.next_page_token):
                break
        same(found, ids[::-1])
        of_state = ListTasksRequest(
            context_id=context, status=TaskState.TASK_STATE_COMPLETED, include_artifacts=True
        )
        same([len(task.artifacts) for task in (await self.blocking.list_tasks(of_state)).tasks], [1, 1, 1])
        of_state.status = TaskState.TASK_STATE_FAILED
        same((await self.blocking.list_tasks(of_state)).total_size, 0)

    async def subscribe(self):
        task = await self.task(self.polling, 'tick 10 100')

        async def listen():
            request = SubscribeToTaskRequest(id=task.id)
            return [event async for event in self.streaming.subscribe(request)]

        for told in await asyncio.gather(listen(), listen()):
            same(told[0].task.id, task.id)
            same(told[-1].status_update.status.state, TaskState.TASK_STATE_COMPLETED)
            last = [it.artifact_update for it in told if it.HasField('artifact_update')][-1]
            same(get_artifact_text(last.artifact), '10\n')

    async def push(self):
        receiver, client = Receiver(), self.blocking
        asked = await self.task(client, 'ask')
        wanted = TaskPushNotificationConfig(
            task_id=asked.id,
            url=receiver.url,
            token='mine',
            authentication=AuthenticationInfo(scheme='Bearer', credentials='let-me-in'),
        )
        made = await client.create_task_push_notification_config(wanted)
        assert made.id, made
        which = {'task_id': asked.id, 'id': made.id}
        got = await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**which))
        same((got.url, got.token, got.authentication.scheme), (receiver.url, 'mine', 'Bearer'))
        await self.task(client, 'blue', task_id=asked.id)
        headers, body = await receiver.wait_for(
            lambda it: it.get('statusUpdate', {}).get('status', {}).get('state') == 'TASK_STATE_COMPLETED'
        )
        same(body['statusUpdate']['taskId'], asked.id)
        same((headers['x-a2a-notification-token'], headers['authorization']), ('mine', 'Bearer let-me-in'))

        of_task = ListTaskPushNotificationConfigsRequest(task_id=asked.id)
        same(len((await client.list_task_push_notification_configs(of_task)).configs), 1)
        await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**which))
        same(len((await client.list_task_push_notification_configs(of_task)).configs), 0)

        inline = SendMessageConfiguration(
            task_push_notification_config=TaskPushNotificationConfig(url=receiver.url)
        )
        [answer] = await self.all(client, 'flood 1', configuration=inline)
        await receiver.wait_for(lambda it: it.get('statusUpdate', {}).get('taskId') == answer.task.id)
        return f'{len(receiver.came)} notifications'

    async def cancel(self):
        task = await self.task(self.polling, 'tick 100 100')
        canceled = await self.blocking.cancel_task(CancelTaskRequest(id=task.id))
        same((canceled.id, canceled.status.state), (task.id, TaskState.TASK_STATE_CANCELED))
        again = self.blocking.cancel_task(CancelTaskRequest(id=task.id))
        await refused(again, errors.TaskNotCancelableError)

    async def input_required(self):
        asked = await self.task(self.blocking, 'ask')
        same(asked.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
        same(get_message_text(asked.status.message), 'what do you say?')
        told = await self.all(self.streaming, 'blue', task_id=asked.id, context_id=asked.context_id)
        same(told[0].task.id, asked.id)
        # A quick agent may finish before its client is subscribed.
        last = told[-1].task if told[-1].HasField('task') else told[-1].status_update
        same(get_message_text(last.status.message), 'blue')
        login = await self.task(self.blocking, 'auth')
        same(login.status.state, TaskState.TASK_STATE_AUTH_REQUIRED)
        login = await self.task(self.blocking, 'me', task_id=login.id)
        same(login.status.state, TaskState.TASK_STATE_COMPLETED)

    async def ends(self):
        for text, state in (('reject', TaskState.TASK_STATE_REJECTED), ('fail', TaskState.TASK_STATE_FAILED)):
            same((await self.task(self.blocking, text)).status.state, state)

    async def extended_card(self):
        # Only clients with a token have an extended card, and the hub's own user needs no token.
        assert self.card.capabilities.extended_agent_card == bool(KEY)
        card = await self.blocking.get_extended_agent_card(GetExtendedAgentCardRequest())
        same((card.name, card.skills[0].id), ('test-guests', 'behave'))

    async def error_mapping(self):
        client = self.blocking
        await refused(client.get_task(GetTaskRequest(id='none')), errors.TaskNotFoundError)
        await refused(client.cancel_task(CancelTaskRequest(id='none')), errors.TaskNotFoundError)
        over = await self.task(client, 'flood 1')
        await refused(self.all(client, 'more', task_id=over.id), errors.UnsupportedOperationError)
        await refused(self.all(self.streaming, 'more', task_id=over.id), errors.UnsupportedOperationError)
        await refused(self.all(client, 'more', task_id='none'), errors.TaskNotFoundError)
        await refused(client.list_tasks(ListTasksRequest(page_size=1000)), errors.InvalidParamsError)

        async def listen(task):
            return [event async for event in self.streaming.subscribe(SubscribeToTaskRequest(id=task))]

        await refused(listen(over.id), errors.UnsupportedOperationError)
        await refused(listen('none'), errors.TaskNotFoundError)
        # On gRPC this SDK sends its own version first, whatever the settings.
        if BINDING != 'GRPC':
            future = ClientCallContext(service_parameters={'A2A-Version': '99.0'})
            unknown = client.get_task(GetTaskRequest(id=over.id), context=future)
            await refused(unknown, errors.VersionNotSupportedError)


async def main():
    it = Driver()
    await tell(
        BINDING,
        [
            it.discover,
            it.signature,
            it.send_task,
            it.send_message,
            it.non_blocking,
            it.stream,
            it.parts,
            it.get_task,
            it.list_tasks,
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
