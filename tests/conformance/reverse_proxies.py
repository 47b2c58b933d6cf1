"""The web servers of the field as reverse proxies: the program of each, its configuration, and how it is started.

Every one listens on two ports, plain and TLS, closes a connection that was idle for a second, and passes an event on as
soon as it comes.
"""

import contextlib
import dataclasses
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.client.transport.certificates import Certificate
from tests.conformance.clients import SCRIPTS
from tests.support.waiting import wait_until

NGINX = """
daemon off;
user root;
pid {folder}/pid;
error_log stderr;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_timeout 1s;
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_buffering off;
  chunked_transfer_encoding {chunked};
  ssl_certificate {certificate};
  ssl_certificate_key {key};
  server {{
    listen 127.0.0.1:{plain};
    listen 127.0.0.1:{tls} ssl;
    location / {{ proxy_pass {upstream}; }}
  }}
}}
"""
HAPROXY = """
defaults
  mode http
  retries 0
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout http-keep-alive 1s
listen proxy
  bind 127.0.0.1:{plain}
  bind 127.0.0.1:{tls} ssl crt {folder}/both.pem
  server upstream {upstream_host}
"""
# Without the whole request it breaks off an answer that comes at once: Go closes a request whose answer has begun.
CADDY = """
{{
  admin off
  auto_https off
  default_bind 127.0.0.1
  servers {{
    protocols h1 h2
    timeouts {{
      idle 1s
    }}
  }}
}}
(forward) {{
  reverse_proxy {upstream_host} {{
    buffer_requests
  }}
}}
http://127.0.0.1:{plain} {{
  import forward
}}
https://localhost:{tls} {{
  tls {certificate} {key}
  import forward
}}
"""
APACHE = """
ServerRoot {folder}
ServerName localhost
PidFile {folder}/pid
ErrorLog /dev/stderr
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
Listen 127.0.0.1:{plain}
Listen 127.0.0.1:{tls}
KeepAliveTimeout 1
ProxyPass / {upstream}/ flushpackets=on
<VirtualHost 127.0.0.1:{tls}>
  SSLEngine on
  SSLCertificateFile {certificate}
  SSLCertificateKeyFile {key}
  ProxyPass / {upstream}/ flushpackets=on
</VirtualHost>
"""
# Servers stand where only root's PATH looks.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass(frozen=True)
class ReverseProxy:
    """A program that passes requests on to another server."""

    name: str
    command: tuple[str, ...]
    """The program and its arguments, where `{file}` is the configuration."""
    configuration: str
    chunked: str = "on"
    """Whether a body of unknown length comes in chunks; else its connection's end is its own. nginx alone asks."""

    def __str__(self) -> str:
        return self.name

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.command[0], path=_PATH) is not None


_NGINX_COMMAND = ("nginx", "-e", "stderr", "-c", "{file}")
PROXIES = (
    ReverseProxy("nginx", _NGINX_COMMAND, NGINX),
    ReverseProxy("nginx without chunks", _NGINX_COMMAND, NGINX, chunked="off"),
    ReverseProxy("haproxy", ("haproxy", "-f", "{file}"), HAPROXY),
    ReverseProxy("caddy", ("caddy", "run", "--adapter", "caddyfile", "--config", "{file}"), CADDY),
    ReverseProxy("apache2", ("apache2", "-D", "FOREGROUND", "-f", "{file}"), APACHE),
    ReverseProxy(
        "uvicorn",
        (sys.executable, str(SCRIPTS / "uvicorn_proxy.py"), "{file}"),
        '{{"plain": {plain}, "tls": {tls}, "upstream": "{upstream}", "certificate": "{certificate}", "key": "{key}"}}',
    ),
)


@contextlib.contextmanager
def run_reverse_proxy(
    proxy: ReverseProxy, upstream: str, certificate: Certificate, folder: Path
) -> Iterator[dict[str, int]]:
    """Run a reverse proxy in front of an address, and yield its ports, `plain` and `tls`, once it answers."""
    ports = dict(zip(("plain", "tls"), _find_free_ports(), strict=True))
    file = folder / "configuration"
    file.write_text(
        proxy.configuration.format(
            folder=folder,
            upstream=upstream,
            upstream_host=upstream.removeprefix("http://"),
            certificate=certificate.file,
            key=certificate.key,
            chunked=proxy.chunked,
            **ports,
        )
    )
    # haproxy takes a certificate and its key from one file.
    (folder / "both.pem").write_text(certificate.file.read_text() + certificate.key.read_text())
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(
            [part.format(file=file) for part in proxy.command],
            executable=shutil.which(proxy.command[0], path=_PATH),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": _PATH, "HOME": str(folder)},
        )
        try:
            for port in ports.values():
                wait_until(lambda port=port: _accepts(port) or process.poll() is not None, timeout=30)
            assert process.poll() is None, (folder / "log").read_text()
            yield ports
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _find_free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        return first.getsockname()[1], second.getsockname()[1]


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
