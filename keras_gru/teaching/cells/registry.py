"""The cells by the names that a network's file gives them."""

from keras_gru.teaching.cells.cell import Cell
from keras_gru.teaching.cells.gru import GRU
from keras_gru.teaching.cells.lstm import LSTM
from keras_gru.teaching.cells.rnn import VanillaRNN
from keras_gru.teaching.cells.single_gate import MGU, CoupledGRU, MinimalGRU

CELLS: dict[str, Cell] = {
    "gru": GRU(),
    "rnn": VanillaRNN(),
    "lstm": LSTM(),
    "mgu": MGU(),
    "minimal_gru": MinimalGRU(),
    "coupled_gru": CoupledGRU(),
}
