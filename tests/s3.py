"""An S3 server on this machine, and a proxy before it that fails as asked."""

import contextlib
import http.client
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter

import boto3

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


@contextlib.contextmanager
def s3_server():
    """Moto's server in a process of its own; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_for(port, server)
            yield port
        finally:
            server.terminate()


def _wait_for(port, server):
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        assert server.poll() is None, "moto's server ended"
        time.sleep(0.1)
    raise AssertionError("moto's server did not start in a minute")


def client(port):
    """Boto's client of the server at a port."""
    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name=ENVIRONMENT["AWS_DEFAULT_REGION"],
        aws_access_key_id=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
    )


@contextlib.contextmanager
def failing_proxy(port, failures, *, method="GET", status=500, only="/"):
    """Pass requests on, but answer the first `failures` of each object's by `status`.

    Of objects whose path holds `only`.

    Gives its port, and a Counter of the failures by path.
    """
    failed = Counter()
    lock = threading.Lock()

    class Proxy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or each answer waits 40 ms for the head to be acknowledged

        def forward(self):
            path = self.path.partition("?")[0]
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with lock:
                fails = self.command == method and path.count("/") > 1 and failed[path] < failures
                fails = fails and only in path
                failed[path] += fails
            if fails:
                self._answer(status, [], b"")
                return
            connection = http.client.HTTPConnection("127.0.0.1", port)
            with contextlib.closing(connection):
                connection.request(self.command, self.path, body, dict(self.headers))
                response = connection.getresponse()
                self._answer(response.status, response.getheaders(), response.read())

        do_GET = do_HEAD = do_PUT = do_DELETE = forward  # noqa: N815  the names that http.server calls

        def _answer(self, code, headers, data):
            self.send_response(code)
            length = str(len(data))
            for name, value in headers:
                if name.lower() == "content-length" and self.command == "HEAD":
                    length = value
                elif name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", length)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1], failed
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
