"""The connections over which a load test sends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from gru_serving.client.errors import no_server
from gru_serving.client.server_url import grpc_address, is_rest
from gru_serving.load_test.plan import LoadPlan

_CLIENTS_PER_CHANNEL = 8

Ask = Callable[[bytes], Awaitable[str]]


async def connect(plan: LoadPlan, count: int) -> list[Ask]:
    """What sends one request each, and returns the name of the status.

    Args:
        plan: Of the load.
        count: How many.

    Raises:
        Unavailable: No server answers.
    """
    if is_rest(plan.url):
        from gru_serving.load_test.http import HttpConnection

        return [HttpConnection(plan.url, plan.timeout, plan.options).ask for _ in range(count)]
    import grpc.aio

    from gru_serving.client.grpc.connection import channel_options

    address, tls = grpc_address(plan.url)
    asks: list[Ask] = []
    for _ in range(-(-count // _CLIENTS_PER_CHANNEL)):
        local = [*channel_options(plan.options), ("grpc.use_local_subchannel_pool", 1)]
        if tls:
            pems = (plan.options.pem(name) for name in ("ca_file", "key_file", "cert_file"))
            credentials = grpc.ssl_channel_credentials(*pems)
            channel = grpc.aio.secure_channel(address, credentials, local)
        else:
            channel = grpc.aio.insecure_channel(address, local)
        try:
            await asyncio.wait_for(channel.channel_ready(), plan.timeout)
        except TimeoutError:
            port = f"port={address.rpartition(':')[2]}"
            raise no_server(plan.url, f"none in {plan.timeout:g} s", port) from None
        asks += [_grpc_ask(channel, plan)] * _CLIENTS_PER_CHANNEL
    return asks[:count]


def _grpc_ask(channel: Any, plan: LoadPlan) -> Ask:
    import grpc

    method = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    token = plan.options.token
    metadata = () if token is None else (("authorization", f"Bearer {token}"),)

    async def ask(request: bytes) -> str:
        try:
            await method(request, timeout=plan.timeout, metadata=metadata)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    return ask
