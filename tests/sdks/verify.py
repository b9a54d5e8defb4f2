"""How a receiver knows that a notification is the hub's, is new, and was not changed on its way.

As a program it reads {"jwks", "headers", "body"} as JSON and says what it found.
"""

import base64
import hashlib
import json
import sys
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

WINDOW = 300  # seconds: what is older may have been sent by who overheard it


def unbase64url(text):
    return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


def thumbprint(jwk):
    """RFC 7638."""
    members = {name: jwk[name] for name in ('crv', 'kty', 'x')}
    text = json.dumps(members, separators=(',', ':'), sort_keys=True)
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()


def verify(jwks, headers, body):
    """Raises ValueError unless `body`, the bytes as they came, is the hub's. `jwks` is what the hub has at
    /.well-known/jwks.json, kept for as long as `Cache-Control` says; if the key is not known, get it anew."""
    keys = {thumbprint(key): key for key in jwks['keys'] if key.get('crv') == 'Ed25519'}
    key = keys.get(headers['webhook-key-id'])
    if key is None:
        raise ValueError('the key is not known')
    if abs(time.time() - int(headers['webhook-timestamp'])) > WINDOW:
        raise ValueError('it is too old')
    signed = f'{headers["webhook-id"]}.{headers["webhook-timestamp"]}.'.encode() + body
    public = Ed25519PublicKey.from_public_bytes(unbase64url(key['x']))
    for signature in headers['webhook-signature'].split(' '):
        scheme, _, signature = signature.partition(',')
        try:
            if scheme == 'v1a':
                return public.verify(base64.b64decode(signature), signed)
        except InvalidSignature:
            pass  # while keys change there is one of each
    raise ValueError('no signature is right')


if __name__ == '__main__':
    came = json.load(sys.stdin)
    try:
        verify(came['jwks'], came['headers'], came['body'].encode())
        print("it is the hub's")
    except ValueError as why:
        print(why)
