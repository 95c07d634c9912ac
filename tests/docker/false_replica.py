"""A replica that misbehaves: reads a request, says so, and answers or breaks off.

Usage: python3 false_replica.py MODE PORT ...; MODE is one of

break   closes the connection when the request is there
stop    answers 503, as an engine that stops
answer  answers 200

Writes a line for each request: port, method and path. HTTP/2 is not read beyond its first bytes.
"""

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


if __name__ == "__main__":
    mode, *ports = sys.argv[1:]
    for port in ports:
        threading.Thread(target=listen, args=(int(port), mode)).start()
