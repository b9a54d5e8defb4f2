"""Verification by a receiver that a notification is the hub's, new, and unchanged.

As a program it reads {"jwks", "headers", "body"} as JSON and prints the result.
"""

import base64
import hashlib
import json
import sys
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

WINDOW = 300  # seconds; an older notification may be a replay by an eavesdropper


def unbase64url(text):
    return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


def thumbprint(jwk):
    """Thumbprint of a JWK (RFC 7638)."""
    members = {name: jwk[name] for name in ('crv', 'kty', 'x')}
    text = json.dumps(members, separators=(',', ':'), sort_keys=True)
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()


def verify(jwks, headers, body):
    """Raises ValueError unless `body`, the raw bytes, was signed by the hub.

    `jwks` is the content of the hub's /.well-known/jwks.json, cached as long as `Cache-Control`
    allows. If the key is unknown, fetch it again.
    """
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
            pass  # during a change of keys, each of them signs
    raise ValueError('no signature is right')


if __name__ == '__main__':
    came = json.load(sys.stdin)
    try:
        verify(came['jwks'], came['headers'], came['body'].encode())
        print("it is the hub's")
    except ValueError as why:
        print(why)
