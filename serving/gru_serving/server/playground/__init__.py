"""The playground: pages on which people try the models of a server."""

PATH = "/playground"
