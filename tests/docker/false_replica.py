"""A replica that misbehaves: reads a request, says so, and answers or breaks off.

Usage: python3 false_replica.py MODE PORT ...; MODE is one of

break   closes the connection when the request is there
stop    answers 503, as an engine that stops; gRPC by the engine's own gate
answer  answers 200; gRPC with an empty message

Writes a line for each request: port, method and path. On port 8500, `break` does not read HTTP/2
beyond its first bytes; the others speak gRPC.
"""

import asyncio
import socket
import sys
import threading

ANSWERS = {"stop": "503 Service Unavailable", "answer": "200 OK"}


def attend(connection, port, mode):
    with connection:
        connection.settimeout(10)
        received = b""
        while b"\r\n\r\n" not in received:
            more = connection.recv(65536)
            if not more:
                return
            received += more
        asked = received.split(b" HTTP")[0].decode(errors="replace")
        sys.stdout.write(f"{port} {asked}\n")
        sys.stdout.flush()
        if mode in ANSWERS:
            head = f"HTTP/1.1 {ANSWERS[mode]}\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode() + b"{ }\n")
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass


def listen(port, mode):
    with socket.create_server(("", port)) as server:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=attend, args=(connection, port, mode)).start()


def listen_for_grpc(port, mode):
    import grpc

    from gru_serving.server.grpc.listener import DrainGate

    class Answers(grpc.GenericRpcHandler):
        def service(self, details):
            sys.stdout.write(f"{port} {details.method}\n")
            sys.stdout.flush()
            return grpc.unary_unary_rpc_method_handler(answer) if mode == "answer" else None

    async def answer(request, context):
        return b""

    async def serve():
        gate = DrainGate()
        server = grpc.aio.server(handlers=[Answers(), gate])
        if mode == "stop":
            await gate.close()
        server.add_insecure_port(f"0.0.0.0:{port}")
        await server.start()
        await server.wait_for_termination()

    asyncio.run(serve())


if __name__ == "__main__":
    mode, *ports = sys.argv[1:]
    if mode in ANSWERS:
        ports.remove("8500")
        threading.Thread(target=listen_for_grpc, args=(8500, mode)).start()
    for port in ports:
        threading.Thread(target=listen, args=(int(port), mode)).start()
    threading.Event().wait()  # threads can import little once the main one has ended
