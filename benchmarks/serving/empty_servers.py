"""Servers that do nothing: the limit that Python's libraries set for any server.

Usage: python empty_servers.py grpc-aio|grpc-threads|asgi PORT ANSWER_FILE
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def _handler(call):
    import grpc

    class Everything(grpc.GenericRpcHandler):
        def service(self, _):
            return grpc.unary_unary_rpc_method_handler(call)

    return Everything()


def grpc_threads(port: int, answer: bytes) -> None:
    """The server of grpcio with a pool of threads."""
    import grpc

    server = grpc.server(ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((_handler(lambda _, __: answer),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


def grpc_aio(port: int, answer: bytes) -> None:
    """The asyncio server of grpcio, on uvloop."""
    import grpc
    import uvloop

    async def call(_, __):
        return answer

    async def serve():
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((_handler(call),))
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        await server.wait_for_termination()

    uvloop.run(serve())


def asgi(port: int, answer: bytes) -> None:
    """Starlette on uvicorn, with uvloop and httptools."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def endpoint(request):
        await request.body()
        return Response(answer, media_type="application/json")

    app = Starlette(routes=[Route("/{path:path}", endpoint, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    kind, port, file = sys.argv[1:]
    {"grpc-aio": grpc_aio, "grpc-threads": grpc_threads, "asgi": asgi}[kind](
        int(port), Path(file).read_bytes()
    )
