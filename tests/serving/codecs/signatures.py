"""Signatures of given types."""

from gru_serving.codecs.dtypes import DTYPES
from gru_serving.codecs.signature import Signature, TensorInfo

NUMBER = {dtype.name: dtype.number for dtype in DTYPES}


def signature(**inputs):
    infos = {name: TensorInfo(f"{name}:0", NUMBER[dtype], None) for name, dtype in inputs.items()}
    return Signature(infos, infos)
