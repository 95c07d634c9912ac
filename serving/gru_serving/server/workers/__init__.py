"""Several processes that answer requests behind one address, as one server.

The owner's process has the ordinary `Repository`: version policies, labels, loads, retries, unloads
and the config file are its alone, and it answers no request. What it loads is a copy in each
worker; what it knows of the versions is a catalogue, and every worker has a replica of that. Each
change goes to all workers in two steps: it is staged, and when all have it, the owner advances a
clock in shared memory, at which a worker looks with each request. So there is no time at which two
workers answer by different catalogues. A version is AVAILABLE when all workers have loaded it, and
is freed when none serves it and no request holds it. Requests to reload go to the owner, and its
page of metrics adds up those of the workers.

The kernel shares the connections to the port among the workers; a connection stays with its worker.
"""
