"""Generated from profiler_service.proto by serving.protos.regenerate: do not edit."""

from serving.protos import pool

pool.define(
    globals(),
    b'\n%serving/protos/profiler_service.proto\x12\ntensorflow"\xe6\x01\n\x0eProf'
    b'ileOptions\x12.\n\x13include_dataset_ops\x18\x01 \x01(\x08R\x11includeDatasetOps\x12*'
    b'\n\x11host_tracer_level\x18\x02 \x01(\rR\x0fhostTracerLevel\x12.\n\x13device_tracer_'
    b'level\x18\x03 \x01(\rR\x11deviceTracerLevel\x12.\n\x13python_tracer_level\x18\x04 \x01(\rR'
    b'\x11pythonTracerLevel\x12\x18\n\x07version\x18\x05 \x01(\rR\x07version"\xfb\x01\n\x0eProfileRequ'
    b'est\x12\x1f\n\x0bduration_ms\x18\x01 \x01(\x04R\ndurationMs\x12\x1d\n\nmax_events\x18\x02 \x01(\x04R\tma'
    b'xEvents\x12\x14\n\x05tools\x18\x03 \x03(\tR\x05tools\x12.\n\x04opts\x18\x04 \x01(\x0b2\x1a.tensorflow.Pro'
    b"fileOptionsR\x04opts\x12'\n\x0frepository_root\x18\x05 \x01(\tR\x0erepositoryRoot\x12\x1d"
    b'\n\nsession_id\x18\x06 \x01(\tR\tsessionId\x12\x1b\n\thost_name\x18\x07 \x01(\tR\x08hostName"9'
    b'\n\x0fProfileToolData\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x12\x12\n\x04data\x18\x02 \x01(\x0cR\x04data"l\n'
    b'\x0fProfileResponse\x128\n\ttool_data\x18\x06 \x03(\x0b2\x1b.tensorflow.ProfileTool'
    b'DataR\x08toolData\x12\x1f\n\x0bempty_trace\x18\x07 \x01(\x08R\nemptyTrace"1\n\x10Terminate'
    b'Request\x12\x1d\n\nsession_id\x18\x01 \x01(\tR\tsessionId"\x13\n\x11TerminateResponse"'
    b'z\n\x0eMonitorRequest\x12\x1f\n\x0bduration_ms\x18\x01 \x01(\x04R\ndurationMs\x12)\n\x10monito'
    b'ring_level\x18\x02 \x01(\x05R\x0fmonitoringLevel\x12\x1c\n\ttimestamp\x18\x03 \x01(\x08R\ttimest'
    b'amp"%\n\x0fMonitorResponse\x12\x12\n\x04data\x18\x01 \x01(\tR\x04data2\xe3\x01\n\x0fProfilerServi'
    b'ce\x12B\n\x07Profile\x12\x1a.tensorflow.ProfileRequest\x1a\x1b.tensorflow.Profi'
    b'leResponse\x12H\n\tTerminate\x12\x1c.tensorflow.TerminateRequest\x1a\x1d.tens'
    b'orflow.TerminateResponse\x12B\n\x07Monitor\x12\x1a.tensorflow.MonitorRequ'
    b'est\x1a\x1b.tensorflow.MonitorResponseb\x06proto3'
)
