"""Signatures of given types."""

from serving.codecs.dtypes import DTYPES
from serving.codecs.signature import Signature, TensorInfo

NUMBER = {dtype.name: dtype.number for dtype in DTYPES}


def signature(**inputs):
    infos = {name: TensorInfo(f"{name}:0", NUMBER[dtype], None) for name, dtype in inputs.items()}
    return Signature(infos, infos)
