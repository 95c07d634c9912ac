"""Generated from profiler_service.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n)gru_serving/protos/profiler_service.proto\x12\ntensorflow"\xe6\x01\n\x0e'
    b'ProfileOptions\x12.\n\x13include_dataset_ops\x18\x01 \x01(\x08R\x11includeDatasetO'
    b'ps\x12*\n\x11host_tracer_level\x18\x02 \x01(\rR\x0fhostTracerLevel\x12.\n\x13device_tra'
    b'cer_level\x18\x03 \x01(\rR\x11deviceTracerLevel\x12.\n\x13python_tracer_level\x18\x04 '
    b'\x01(\rR\x11pythonTracerLevel\x12\x18\n\x07version\x18\x05 \x01(\rR\x07version"\xfb\x01\n\x0eProfile'
    b'Request\x12\x1f\n\x0bduration_ms\x18\x01 \x01(\x04R\ndurationMs\x12\x1d\n\nmax_events\x18\x02 \x01(\x04'
    b'R\tmaxEvents\x12\x14\n\x05tools\x18\x03 \x03(\tR\x05tools\x12.\n\x04opts\x18\x04 \x01(\x0b2\x1a.tensorflow'
    b".ProfileOptionsR\x04opts\x12'\n\x0frepository_root\x18\x05 \x01(\tR\x0erepositoryRo"
    b'ot\x12\x1d\n\nsession_id\x18\x06 \x01(\tR\tsessionId\x12\x1b\n\thost_name\x18\x07 \x01(\tR\x08hostNa'
    b'me"9\n\x0fProfileToolData\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x12\x12\n\x04data\x18\x02 \x01(\x0cR\x04dat'
    b'a"l\n\x0fProfileResponse\x128\n\ttool_data\x18\x06 \x03(\x0b2\x1b.tensorflow.Profile'
    b'ToolDataR\x08toolData\x12\x1f\n\x0bempty_trace\x18\x07 \x01(\x08R\nemptyTrace"1\n\x10Termi'
    b'nateRequest\x12\x1d\n\nsession_id\x18\x01 \x01(\tR\tsessionId"\x13\n\x11TerminateRespo'
    b'nse"z\n\x0eMonitorRequest\x12\x1f\n\x0bduration_ms\x18\x01 \x01(\x04R\ndurationMs\x12)\n\x10mo'
    b'nitoring_level\x18\x02 \x01(\x05R\x0fmonitoringLevel\x12\x1c\n\ttimestamp\x18\x03 \x01(\x08R\tti'
    b'mestamp"%\n\x0fMonitorResponse\x12\x12\n\x04data\x18\x01 \x01(\tR\x04data2\xe3\x01\n\x0fProfilerS'
    b'ervice\x12B\n\x07Profile\x12\x1a.tensorflow.ProfileRequest\x1a\x1b.tensorflow.P'
    b'rofileResponse\x12H\n\tTerminate\x12\x1c.tensorflow.TerminateRequest\x1a\x1d.'
    b'tensorflow.TerminateResponse\x12B\n\x07Monitor\x12\x1a.tensorflow.Monitor'
    b'Request\x1a\x1b.tensorflow.MonitorResponseb\x06proto3'
)
