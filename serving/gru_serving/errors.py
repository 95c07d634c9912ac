"""Errors of serving, independent of HTTP and gRPC.

The canonical status codes are shared by TensorFlow, gRPC and TF Serving's REST API. Each transport
has one table from them to its own codes (`gru_serving.codecs.json_predict.HTTP_STATUS`,
`gru_serving.server.grpc.services.GRPC_STATUS`).

    ServingError
    ├── InvalidArgument       the request is wrong whatever the state of the server
    ├── FailedPrecondition    the request does not fit the model or its state
    ├── NotFound              no such model or version
    ├── DeadlineExceeded
    ├── ResourceExhausted
    ├── Unavailable           not now: try again
    ├── Unimplemented
    ├── Internal
    ├── Unknown
    └── RefusedVersion        a version that must not be loaded, or that crashed a process
"""

# ruff: noqa: N818 (the classes are named after the canonical codes)
import re
from enum import IntEnum

# The number of blanks is limited because messages may quote megabytes of them. Of several errors
# only the first is reported: the others follow from it or repeat it.
_ROOT_ERRORS = re.compile(
    r"^\d+ root error\(s\) found\.\s*\(0\) (?:[A-Z_]+: |[A-Z][\w ]+: )?(.*?)(?=\n\s*\(1\) |\Z)",
    re.S,
)
_PLACE = re.compile(r"\s{0,4}\[\[(?:\{\{[^{}]*\}\})+[^\[\]]*\]\]|\n\t \[\[[^\s\[\]]*\]\]")
_NAME = re.compile(r"(?:\[_Derived_\])?\s{0,4}\{\{(?:function_node|node) [^{}]*\}\} ?")
_ASSERTION_PLACE = re.compile(r"(\[\w+) \([\w./]+:\d+\)( = \])")
_STACK = re.compile(
    r"\n\s{0,4}(?:Detected at node|Original stack trace for|Stack trace for op).*", re.S
)
_EAGER_OPERATION = re.compile(r" \[Op:\w+\].*$", re.S)
_ENDS = re.compile(r"\n\d+ (?:successful operations|derived errors ignored)\.", re.S)


def without_node_names(message: str) -> str:
    """Remove the names of graph nodes from a message."""
    several = _ROOT_ERRORS.match(message)
    if several is not None:
        message = _ENDS.sub("", several[1])
    if "{{" in message:
        message = _NAME.sub("", _PLACE.sub("", message))
    message = _ASSERTION_PLACE.sub(r"\1\2", _STACK.sub("", message))
    return _EAGER_OPERATION.sub("", message)


NO_MEMORY = "the process got no more memory from the system; send less at once, or allow it more"
_NO_THREAD = "can't start new thread"


class Code(IntEnum):
    """Canonical status codes, with the numbers of gRPC and `tensorflow.error.Code`."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class ServingError(Exception):
    """An error with a canonical code.

    Attributes:
        code: The canonical code.
        message: The text, as TF Serving has it wherever TF Serving has one.
    """

    code = Code.UNKNOWN

    def __init__(self, message: str, code: Code | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return self.message

    @property
    def status(self) -> str:
        """The absl form, `INVALID_ARGUMENT: text`."""
        return f"{self.code.name}: {self.message}"


class InvalidArgument(ServingError):
    """The request is wrong whatever the state of the server."""

    code = Code.INVALID_ARGUMENT


class FailedPrecondition(ServingError):
    """The request does not fit the model or its state."""

    code = Code.FAILED_PRECONDITION


class NotFound(ServingError):
    """No such model or version."""

    code = Code.NOT_FOUND


class DeadlineExceeded(ServingError):
    """The allowed time is over."""

    code = Code.DEADLINE_EXCEEDED


class ResourceExhausted(ServingError):
    """A limit was reached."""

    code = Code.RESOURCE_EXHAUSTED


class Unavailable(ServingError):
    """The server cannot answer now; the same request may succeed later."""

    code = Code.UNAVAILABLE


class Unimplemented(ServingError):
    """The request asks for something that is not supported."""

    code = Code.UNIMPLEMENTED


class Internal(ServingError):
    """A fault of the server."""

    code = Code.INTERNAL


class Unknown(ServingError):
    """A failure without a better code."""

    code = Code.UNKNOWN


class RefusedVersion(ServingError):
    """A version that is not retried and does not count until its files change.

    Its files differ from the exported ones, or a process that tried to load it died.
    """

    code = Code.DATA_LOSS


_BY_CODE: dict[Code, type[ServingError]] = {
    cls.code: cls
    for cls in (
        InvalidArgument,
        FailedPrecondition,
        NotFound,
        DeadlineExceeded,
        ResourceExhausted,
        Unavailable,
        Unimplemented,
        Internal,
        Unknown,
    )
}


def from_code(code: int, message: str) -> ServingError:
    """Make the error of the class for `code`; a plain `ServingError` if no class has it.

    Args:
        code: A canonical code other than OK; an unknown number counts as UNKNOWN.
        message: The text, perhaps TensorFlow's: the names of nodes in it are left out.
    """
    try:
        known = Code(code)
    except ValueError:
        known = Code.UNKNOWN
    return _BY_CODE.get(known, ServingError)(without_node_names(message), known)


def refused_by_system(error: Exception) -> ResourceExhausted | None:
    """Return the error to report if the system gave no memory or no thread; None for any other."""
    if isinstance(error, MemoryError):
        return ResourceExhausted(NO_MEMORY)
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return ResourceExhausted(
            "the system started no more threads for the process; allow it more memory "
            "(`ulimit -v`) or threads (`ulimit -u`), or set fewer of them (--grpc_max_threads)"
        )
    return None


class PlotError(Exception):
    """A picture cannot be drawn."""


class InterfaceChangeError(Exception):
    """A version would break its clients; the message is an escaped list with one line each."""
