"""Support of the Python reference agents: listening, and announcing the address."""

import argparse
import datetime
import ipaddress
import pathlib
import socket

import grpc
import uvicorn

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def arguments():
    """Parses the options of the agent."""
    parser = argparse.ArgumentParser()
    parser.add_argument('binding')
    parser.add_argument('--no-streaming', dest='streaming', action='store_false')
    parser.add_argument('--certificate', metavar='FOLDER')
    parser.add_argument('--key', metavar='FILE')
    return parser.parse_args()


def listen():
    """Opens a socket on a free loopback port; returns it with its URL."""
    listening = socket.create_server(('127.0.0.1', 0))
    return listening, f'http://127.0.0.1:{listening.getsockname()[1]}'


async def serve(app, listening, *told):
    """Prints the address, and serves until the process is ended."""
    print(*told, flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level='warning')).serve([listening])


class Grpc:
    """gRPC server on a free port, at `origin` and at `url` as in cards. It uses TLS if given a
    folder for the certificate.
    """

    def __init__(self, folder=None):
        self.server = grpc.aio.server()
        if folder is None:
            port = self.server.add_insecure_port('127.0.0.1:0')
            self.origin, self.url = f'http://127.0.0.1:{port}', f'127.0.0.1:{port}'
        else:
            key, certificate = self_signed()
            pathlib.Path(folder, 'certificate.pem').write_bytes(certificate)
            credentials = grpc.ssl_server_credentials([(key, certificate)])
            port = self.server.add_secure_port('127.0.0.1:0', credentials)
            self.origin = self.url = f'https://127.0.0.1:{port}'


def self_signed():
    """Creates a key and a certificate for loopback, both in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, 'reference')])
    now = datetime.datetime.now(datetime.timezone.utc)
    loopback = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address('127.0.0.1'))])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    builder = builder.add_extension(loopback, critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, certificate.public_bytes(serialization.Encoding.PEM)
