"""The state of a version, as a client sees it."""


def ended(client, version, model="m"):
    return any(one.version == version and one.state == "END" for one in client.status(model))


def serves(client, version, model="m"):
    states = {one.version: one.state for one in client.status(model)}
    return states.get(version) == "AVAILABLE"
