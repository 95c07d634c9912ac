"""Generated from predict.proto by serving.protos.regenerate: do not edit."""

from serving.protos import model_pb2
from serving.protos import tensor_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n\x1cserving/protos/predict.proto\x12\x12tensorflow.serving\x1a\x1aserving/'
    b'protos/model.proto\x1a\x1bserving/protos/tensor.proto"\xbc\n\n\x0ePredictR'
    b'equest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.serving.ModelSpecR\tm'
    b'odelSpec\x12F\n\x06inputs\x18\x02 \x03(\x0b2..tensorflow.serving.PredictRequest'
    b'.InputsEntryR\x06inputs\x12#\n\routput_filter\x18\x03 \x03(\tR\x0coutputFilter\x12d\n'
    b'\x18predict_streamed_options\x18\x05 \x01(\x0b2*.tensorflow.serving.Predict'
    b'StreamedOptionsR\x16predictStreamedOptions\x12 \n\tclient_id\x18\x06 \x01(\x0cH\x00'
    b'R\x08clientId\x88\x01\x01\x12_\n\x0frequest_options\x18\x07 \x01(\x0b21.tensorflow.serving.'
    b'PredictRequest.RequestOptionsH\x01R\x0erequestOptions\x88\x01\x01\x1a\x99\x06\n\x0eReque'
    b'stOptions\x12 \n\tclient_id\x18\x01 \x01(\x0cH\x00R\x08clientId\x88\x01\x01\x12w\n\x12deterministic'
    b'_mode\x18\x02 \x01(\x0e2C.tensorflow.serving.PredictRequest.RequestOptio'
    b'ns.DeterministicModeH\x01R\x11deterministicMode\x88\x01\x01\x12U\n%return_addit'
    b'ional_arrays_from_prefill\x18\x03 \x01(\x08H\x02R!returnAdditionalArraysFro'
    b'mPrefill\x88\x01\x01\x12+\n\x11return_stoptokens\x18\x04 \x03(\x03R\x10returnStoptokens\x127\n\x15'
    b'return_all_stoptokens\x18\t \x01(\x08H\x03R\x13returnAllStoptokens\x88\x01\x01\x12-\n\x10max'
    b'_cache_length\x18\x06 \x01(\x03H\x04R\x0emaxCacheLength\x88\x01\x01\x12^\n\thandshake\x18\r \x01(\x0b2'
    b';.tensorflow.serving.PredictRequest.RequestOptions.Handshake'
    b'H\x05R\thandshake\x88\x01\x01\x1aC\n\tHandshake\x126\n\x17estimated_payload_bytes\x18\x01 \x01'
    b'(\x03R\x15estimatedPayloadBytes"O\n\x11DeterministicMode\x12"\n\x1eDETERMINIS'
    b'TIC_MODE_UNSPECIFIED\x10\x00\x12\x16\n\x12FIXED_DECODER_SLOT\x10\x01B\x0c\n\n_client_id'
    b'B\x15\n\x13_deterministic_modeB(\n&_return_additional_arrays_from_pr'
    b'efillB\x18\n\x16_return_all_stoptokensB\x13\n\x11_max_cache_lengthB\x0c\n\n_han'
    b'dshake\x1aR\n\x0bInputsEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12-\n\x05value\x18\x02 \x01(\x0b2\x17.ten'
    b'sorflow.TensorProtoR\x05value:\x028\x01B\x0c\n\n_client_idB\x12\n\x10_request_opt'
    b'ionsJ\x04\x08\x04\x10\x05"\x9c\x03\n\x16PredictStreamedOptions\x12\\\n\rrequest_state\x18\x01 \x01(\x0e'
    b'27.tensorflow.serving.PredictStreamedOptions.RequestStateR\x0cr'
    b'equestState\x12j\n\x10split_dimensions\x18\x02 \x03(\x0b2?.tensorflow.serving.P'
    b'redictStreamedOptions.SplitDimensionsEntryR\x0fsplitDimensions\x12'
    b'4\n\x16return_single_response\x18\x03 \x01(\x08R\x14returnSingleResponse\x1aB\n\x14Spl'
    b'itDimensionsEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n\x05value\x18\x02 \x01(\x05R\x05value:\x028'
    b'\x01">\n\x0cRequestState\x12\x08\n\x04NONE\x10\x00\x12\t\n\x05SPLIT\x10\x01\x12\r\n\tEND_SPLIT\x10\x02\x12\n\n\x06CAN'
    b'CEL\x10\x03"\xf0\x01\n\x0fPredictResponse\x12<\n\nmodel_spec\x18\x02 \x01(\x0b2\x1d.tensorflow.s'
    b'erving.ModelSpecR\tmodelSpec\x12J\n\x07outputs\x18\x01 \x03(\x0b20.tensorflow.se'
    b'rving.PredictResponse.OutputsEntryR\x07outputs\x1aS\n\x0cOutputsEntry\x12'
    b'\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12-\n\x05value\x18\x02 \x01(\x0b2\x17.tensorflow.TensorProtoR\x05v'
    b'alue:\x028\x01b\x06proto3'
)
