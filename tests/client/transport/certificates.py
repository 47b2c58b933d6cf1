"""A certificate for localhost that nobody but its own file vouches for."""

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest


class Certificate(NamedTuple):
    """The files of a certificate and its key."""

    file: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """What a server presents."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.file, self.key)
        return context

    def client_context(self) -> ssl.SSLContext:
        """What a client trusts."""
        return ssl.create_default_context(cafile=str(self.file))


def make_certificate(folder: Path) -> Certificate:
    """Make one with openssl; skips the test where there is none."""
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    certificate = Certificate(folder / "certificate.pem", folder / "key.pem")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(certificate.key), "-out", str(certificate.file)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names, *files]
    subprocess.run(command, check=True, capture_output=True)
    return certificate
