"""Servers that are not TF Serving, or do not answer like it; on real sockets."""

import contextlib
import http.server
import json
import re
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc


@contextmanager
def web(status, body, kind, seconds=0.0):
    """A web server that always gives the same answer, or what a function of the path returns."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are sent one after the other

        def do_GET(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            time.sleep(seconds)
            self.server.seen.append(self.headers)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            content = body(self.path) if callable(body) else body
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.seen, server.daemon_threads = [], True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def unread(request):
    """How many bytes to read of a request that begins like this; None at its end."""
    head, blank, body = bytes(request).partition(b"\r\n\r\n")
    if not blank:
        return 1 << 16
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return int(length[1]) - len(body) or None if length else None


@contextmanager
def bare(answer):
    """A server that passes each connection, after reading its first request, to a function.

    The request is read to its end: closed with bytes unread, a connection would be reset.
    """
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # closed: that is the end
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection):
        with connection, contextlib.suppress(OSError):
            read = bytearray()
            while (left := unread(read)) is not None:
                if not (chunk := connection.recv(left)):
                    return
                read += chunk
            answer(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@contextmanager
def rpc(code=None, text="", seconds=0.0, credentials=None):
    """A gRPC server that ends every call like this; without a code it knows no method."""
    seen = []

    def end(_, context):
        seen.append(dict(context.invocation_metadata()))
        time.sleep(seconds)
        context.abort(code, text)

    class Handler(grpc.GenericRpcHandler):
        def service(self, _):
            return None if code is None else grpc.unary_unary_rpc_method_handler(end)

    server = grpc.server(ThreadPoolExecutor(4), handlers=[Handler()])
    address = "localhost:0"
    port = (
        server.add_insecure_port(address)
        if credentials is None
        else server.add_secure_port(address, credentials)
    )
    server.start()
    try:
        yield seen, f"grpc{'s' * (credentials is not None)}://localhost:{port}"
    finally:
        server.stop(None).wait()


@contextmanager
def secure(transport, key, cert, client_verify):
    """A server with TLS and one answer: a model's status, or UNIMPLEMENTED."""
    if transport == "grpc":
        credentials = grpc.ssl_server_credentials(
            [(key.read_bytes(), cert.read_bytes())],
            cert.read_bytes() if client_verify else None,
            client_verify,
        )
        with rpc(grpc.StatusCode.NOT_FOUND, "reached", credentials=credentials) as (_, url):
            yield url
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if client_verify:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cert)
    with web(404, json.dumps({"error": "reached"}).encode(), "application/json") as (site, _):
        site.socket = context.wrap_socket(site.socket, server_side=True)
        site.handle_error = lambda *_: None  # failed handshakes are intended
        yield f"https://localhost:{site.server_port}"


@contextmanager
def bytes_over_grpc(answer, seconds=0.0):
    """A gRPC server that answers any call with these bytes, or with what a function returns.

    Or a dictionary of them, by the name of the method.
    """

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            def give(request, context):
                time.sleep(seconds)
                if isinstance(answer, dict):
                    return answer[details.method.rpartition("/")[2]]
                return answer(request, context) if callable(answer) else answer

            return grpc.unary_unary_rpc_method_handler(give)

    options = [("grpc.max_send_message_length", (1 << 31) - 1)]
    server = grpc.server(ThreadPoolExecutor(4), handlers=[Handler()], options=options)
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield f"grpc://localhost:{port}"
    finally:
        server.stop(None).wait()
