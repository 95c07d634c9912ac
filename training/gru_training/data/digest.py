"""A digest of data, by which a resumed training recognises them."""

from collections.abc import Iterable
from hashlib import sha256

import numpy as np


def data_digest(contents: Iterable[str | np.ndarray]) -> str:
    """Compute the SHA-256 of texts and arrays in their order, in hexadecimal.

    Args:
        contents: Texts, and arrays of numbers, whose dtypes and shapes count too.
    """
    digest = sha256()
    for content in contents:
        if isinstance(content, str):
            kind, data = "text", content.encode("utf-8", "surrogatepass")
        else:
            kind, data = f"{content.dtype.str} {content.shape}", content.tobytes()
        digest.update(f"{kind}, {len(data)} bytes\n".encode())  # where one ends and the next begins
        digest.update(data)
    return digest.hexdigest()
