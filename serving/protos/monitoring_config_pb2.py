"""Generated from monitoring_config.proto by serving.protos.regenerate: do not edit."""

from serving.protos import pool

pool.define(
    globals(),
    b'\n&serving/protos/monitoring_config.proto\x12\x12tensorflow.serving'
    b'">\n\x10PrometheusConfig\x12\x16\n\x06enable\x18\x01 \x01(\x08R\x06enable\x12\x12\n\x04path\x18\x02 \x01(\tR\x04'
    b'path"e\n\x10MonitoringConfig\x12Q\n\x11prometheus_config\x18\x01 \x01(\x0b2$.tensor'
    b'flow.serving.PrometheusConfigR\x10prometheusConfigb\x06proto3'
)
