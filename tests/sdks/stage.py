"""Support of the Python drivers: reporting of steps, and a receiver of notifications."""

import asyncio
import json
import sys
import threading
import time

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


# Timeout of a step in seconds, after which it is reported as failed.
WITHIN = 30


async def tell(binding, steps):
    """Runs the steps in order and prints a line of JSON for each. Ends the process; its code is 0
    if all succeeded.
    """
    good = True
    for step in steps:
        line = {'step': step.__name__, 'binding': binding, 'ok': True, 'detail': ''}
        try:
            line['detail'] = await asyncio.wait_for(step(), WITHIN) or ''
        except Exception as why:
            good = False
            line |= {'ok': False, 'detail': f'{type(why).__name__}: {why}'}
        print(json.dumps(line), flush=True)
    sys.exit(not good)


def same(told, wanted):
    """Fails with both values unless they are equal."""
    if told != wanted:
        raise AssertionError(f'{told!r} instead of {wanted!r}')


async def refused(call, *kinds):
    """Fails unless the awaitable raises one of these errors; returns the error."""
    try:
        answer = await call
    except kinds as why:
        return why
    raise AssertionError(f'{answer!r} instead of {kinds}')


class Receiver:
    """Loopback server that receives notifications."""

    def __init__(self):
        came = self.came = []

        class Take(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                came.append((dict(self.headers), json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Take)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f'http://127.0.0.1:{self.server.server_port}/news'

    async def wait_for(self, wanted):
        """Waits for the first notification whose body is `wanted`; returns its headers, in lower
        case, and body.
        """
        until = time.monotonic() + WITHIN / 2
        while time.monotonic() < until:
            for headers, body in list(self.came):
                if wanted(body):
                    return {name.lower(): value for name, value in headers.items()}, body
            await asyncio.sleep(0.05)
        raise AssertionError(f'it never came; there came {self.came}')
