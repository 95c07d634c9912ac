"""HTTP requests that are sent exactly as written."""

import http.client

HALF_URL = "/v1/models/half%2Fplus%3Atwo"


def raw(server, method, path, body=None, headers=None):
    """A request whose path is sent exactly as written."""
    connection = http.client.HTTPConnection("localhost", server.rest_port, timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.read(), response.headers
    finally:
        connection.close()
