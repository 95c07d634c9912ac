"""Generated from predict.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import model_pb2
from gru_serving.protos import tensor_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n gru_serving/protos/predict.proto\x12\x12tensorflow.serving\x1a\x1egru_'
    b'serving/protos/model.proto\x1a\x1fgru_serving/protos/tensor.proto"'
    b'\xbc\n\n\x0ePredictRequest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.serving.'
    b'ModelSpecR\tmodelSpec\x12F\n\x06inputs\x18\x02 \x03(\x0b2..tensorflow.serving.Pr'
    b'edictRequest.InputsEntryR\x06inputs\x12#\n\routput_filter\x18\x03 \x03(\tR\x0cout'
    b'putFilter\x12d\n\x18predict_streamed_options\x18\x05 \x01(\x0b2*.tensorflow.ser'
    b'ving.PredictStreamedOptionsR\x16predictStreamedOptions\x12 \n\tclien'
    b't_id\x18\x06 \x01(\x0cH\x00R\x08clientId\x88\x01\x01\x12_\n\x0frequest_options\x18\x07 \x01(\x0b21.tensorf'
    b'low.serving.PredictRequest.RequestOptionsH\x01R\x0erequestOptions\x88'
    b'\x01\x01\x1a\x99\x06\n\x0eRequestOptions\x12 \n\tclient_id\x18\x01 \x01(\x0cH\x00R\x08clientId\x88\x01\x01\x12w\n\x12d'
    b'eterministic_mode\x18\x02 \x01(\x0e2C.tensorflow.serving.PredictRequest.'
    b'RequestOptions.DeterministicModeH\x01R\x11deterministicMode\x88\x01\x01\x12U\n%'
    b'return_additional_arrays_from_prefill\x18\x03 \x01(\x08H\x02R!returnAdditio'
    b'nalArraysFromPrefill\x88\x01\x01\x12+\n\x11return_stoptokens\x18\x04 \x03(\x03R\x10returnSt'
    b'optokens\x127\n\x15return_all_stoptokens\x18\t \x01(\x08H\x03R\x13returnAllStoptoke'
    b'ns\x88\x01\x01\x12-\n\x10max_cache_length\x18\x06 \x01(\x03H\x04R\x0emaxCacheLength\x88\x01\x01\x12^\n\thand'
    b'shake\x18\r \x01(\x0b2;.tensorflow.serving.PredictRequest.RequestOptio'
    b'ns.HandshakeH\x05R\thandshake\x88\x01\x01\x1aC\n\tHandshake\x126\n\x17estimated_paylo'
    b'ad_bytes\x18\x01 \x01(\x03R\x15estimatedPayloadBytes"O\n\x11DeterministicMode\x12"'
    b'\n\x1eDETERMINISTIC_MODE_UNSPECIFIED\x10\x00\x12\x16\n\x12FIXED_DECODER_SLOT\x10\x01B\x0c'
    b'\n\n_client_idB\x15\n\x13_deterministic_modeB(\n&_return_additional_ar'
    b'rays_from_prefillB\x18\n\x16_return_all_stoptokensB\x13\n\x11_max_cache_le'
    b'ngthB\x0c\n\n_handshake\x1aR\n\x0bInputsEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12-\n\x05value'
    b'\x18\x02 \x01(\x0b2\x17.tensorflow.TensorProtoR\x05value:\x028\x01B\x0c\n\n_client_idB\x12\n\x10'
    b'_request_optionsJ\x04\x08\x04\x10\x05"\x9c\x03\n\x16PredictStreamedOptions\x12\\\n\rrequest'
    b'_state\x18\x01 \x01(\x0e27.tensorflow.serving.PredictStreamedOptions.Req'
    b'uestStateR\x0crequestState\x12j\n\x10split_dimensions\x18\x02 \x03(\x0b2?.tensorfl'
    b'ow.serving.PredictStreamedOptions.SplitDimensionsEntryR\x0fspli'
    b'tDimensions\x124\n\x16return_single_response\x18\x03 \x01(\x08R\x14returnSingleRes'
    b'ponse\x1aB\n\x14SplitDimensionsEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n\x05value\x18\x02 \x01'
    b'(\x05R\x05value:\x028\x01">\n\x0cRequestState\x12\x08\n\x04NONE\x10\x00\x12\t\n\x05SPLIT\x10\x01\x12\r\n\tEND_SP'
    b'LIT\x10\x02\x12\n\n\x06CANCEL\x10\x03"\xf0\x01\n\x0fPredictResponse\x12<\n\nmodel_spec\x18\x02 \x01(\x0b2\x1d.'
    b'tensorflow.serving.ModelSpecR\tmodelSpec\x12J\n\x07outputs\x18\x01 \x03(\x0b20.t'
    b'ensorflow.serving.PredictResponse.OutputsEntryR\x07outputs\x1aS\n\x0cO'
    b'utputsEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12-\n\x05value\x18\x02 \x01(\x0b2\x17.tensorflow.Te'
    b'nsorProtoR\x05value:\x028\x01b\x06proto3'
)
