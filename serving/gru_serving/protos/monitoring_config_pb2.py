"""Generated from monitoring_config.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n*gru_serving/protos/monitoring_config.proto\x12\x12tensorflow.ser'
    b'ving">\n\x10PrometheusConfig\x12\x16\n\x06enable\x18\x01 \x01(\x08R\x06enable\x12\x12\n\x04path\x18\x02 \x01'
    b'(\tR\x04path"e\n\x10MonitoringConfig\x12Q\n\x11prometheus_config\x18\x01 \x01(\x0b2$.te'
    b'nsorflow.serving.PrometheusConfigR\x10prometheusConfigb\x06proto3'
)
