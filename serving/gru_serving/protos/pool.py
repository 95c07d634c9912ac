"""The private descriptor pool of the generated modules.

TensorFlow and tensorflow-serving-api register files with the same messages in protobuf's default
pool, which refuses a full name twice. In a separate pool the names stay exact (they appear in Any
type URLs, in reflection and in text format) and nothing collides, in either import order.
"""

from typing import Any

from google.protobuf import any_pb2, descriptor_pool, message_factory, wrappers_pb2
from google.protobuf.internal import enum_type_wrapper

POOL = descriptor_pool.DescriptorPool()
for _well_known in (any_pb2, wrappers_pb2):
    POOL.AddSerializedFile(_well_known.DESCRIPTOR.serialized_pb)


def define(namespace: dict[str, Any], serialized: bytes) -> None:
    """Add one file to the pool and its messages, enums and enum values to a module.

    Args:
        namespace: `globals()` of the generated module; the modules of the files it depends on
            are imported already.
        serialized: The FileDescriptorProto.
    """
    file = POOL.AddSerializedFile(serialized)
    namespace["DESCRIPTOR"] = file
    for enum in file.enum_types_by_name.values():
        namespace[enum.name] = enum_type_wrapper.EnumTypeWrapper(enum)
        namespace.update({value.name: value.number for value in enum.values})
    for message in file.message_types_by_name.values():
        namespace[message.name] = message_factory.GetMessageClass(message)
