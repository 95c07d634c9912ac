"""Small versions of the models in public Keras and TensorFlow examples, written anew.

Each function takes the class of its GRUs and gives a functional model.
"""

import keras

K = keras.layers


def next_character(gru):
    """Text generation: scores of the next token, and the state to continue from."""
    tokens, state = keras.Input((None,), dtype="int32"), keras.Input((16,))
    hidden = K.Embedding(30, 8)(tokens)
    hidden, final = gru(16, return_sequences=True, return_state=True)(hidden, initial_state=state)
    return keras.Model([tokens, state], [K.Dense(30)(hidden), final])


def review_classifier(gru):
    """Sentiment: two bidirectional layers over padded words."""
    tokens = keras.Input((None,), dtype="int32")
    hidden = K.Embedding(50, 8, mask_zero=True)(tokens)
    hidden = K.Bidirectional(gru(8, return_sequences=True))(hidden)
    hidden = K.Dropout(0.5)(K.Bidirectional(gru(8))(hidden))
    return keras.Model(tokens, K.Dense(1, activation="sigmoid")(hidden))


def weather(gru):
    """The next value of several series."""
    series = keras.Input((12, 7))
    return keras.Model(series, K.Dense(1)(gru(16)(series)))


def several_days_ahead(gru):
    """Many future values at once, from windows that are scaled inside the model."""
    series = keras.Input((12, 3))
    hidden = K.Rescaling(0.5, offset=-1.0)(series)
    hidden = gru(8, dropout=0.1, recurrent_dropout=0.2)(gru(8, return_sequences=True)(hidden))
    return keras.Model(series, K.Reshape((6, 3))(K.Dense(18)(hidden)))


def addition(gru):
    """From the digits of two numbers to the digits of their sum."""
    digits = keras.Input((7, 12))
    hidden = K.RepeatVector(4)(gru(16)(digits))
    hidden = gru(16, return_sequences=True)(hidden)
    return keras.Model(digits, K.Dense(12, activation="softmax")(hidden))


def translation(gru):
    """Encoder and decoder with teacher forcing, joined by the encoder's state."""
    source, target = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    _, state = gru(12, return_state=True)(K.Embedding(20, 6, mask_zero=True)(source))
    hidden = gru(12, return_sequences=True)(K.Embedding(25, 6)(target), initial_state=state)
    return keras.Model([source, target], K.Dense(25, activation="softmax")(hidden))


def attentive_translation(gru):
    """The same with attention from the decoder to the encoder."""
    source, target = keras.Input((9,), dtype="int32"), keras.Input((8,), dtype="int32")
    read, *state = K.Bidirectional(gru(6, return_sequences=True, return_state=True))(
        K.Embedding(20, 6)(source)
    )
    state = K.Concatenate()(state)
    hidden = gru(12, return_sequences=True)(K.Embedding(25, 6)(target), initial_state=state)
    seen = K.Attention()([hidden, read])
    return keras.Model([source, target], K.Dense(25)(K.Concatenate()([hidden, seen])))


def speech(gru):
    """From spectrogram to characters: convolution, then bidirectional layers."""
    sound = keras.Input((20, 16))
    hidden = K.Reshape((20, 16, 1))(sound)
    hidden = K.Conv2D(4, 3, strides=(1, 2), padding="same", activation="relu")(hidden)
    hidden = K.BatchNormalization()(hidden)
    hidden = K.Reshape((20, 32))(hidden)
    for _ in range(2):
        hidden = K.Bidirectional(gru(8, return_sequences=True, reset_after=True))(hidden)
    return keras.Model(sound, K.Dense(28, activation="softmax")(hidden))


def waveform(gru):
    """Convolution and pooling shorten a signal before the recurrent layer."""
    signal = keras.Input((64, 1))
    hidden = K.Conv1D(8, 5, strides=2, padding="same", activation="relu")(signal)
    hidden = K.MaxPooling1D(2)(K.BatchNormalization()(hidden))
    hidden = gru(12, return_sequences=True)(hidden)
    return keras.Model(signal, K.Dense(4)(K.GlobalMaxPooling1D()(hidden)))


def video(gru):
    """Features of video frames, and an input that says which frames exist."""
    frames, there = keras.Input((6, 20)), keras.Input((6,), dtype="bool")
    hidden = gru(16, return_sequences=True)(frames, mask=there)
    hidden = K.Dropout(0.4)(gru(8)(hidden))
    return keras.Model([frames, there], K.Dense(5, activation="softmax")(hidden))


def document(gru):
    """Words to sentences, sentences to a document."""
    words = keras.Input((None,), dtype="int32")
    sentence = keras.Model(words, gru(8)(K.Embedding(40, 6, mask_zero=True)(words)))
    sentences = keras.Input((3, 5), dtype="int32")
    hidden = gru(8)(K.TimeDistributed(sentence)(sentences))
    return keras.Model(sentences, K.Dense(2)(hidden))


def picture_by_rows(gru):
    """A picture as rows of pixels."""
    picture = keras.Input((8, 6, 1))
    return keras.Model(picture, K.Dense(3)(gru(8)(K.TimeDistributed(gru(4))(picture))))


def anomalies(gru):
    """An autoencoder of series."""
    series = keras.Input((10, 2))
    code = gru(4)(gru(8, return_sequences=True)(series))
    hidden = gru(8, return_sequences=True)(K.RepeatVector(10)(code))
    return keras.Model(series, K.TimeDistributed(K.Dense(2))(hidden))


def similarity(gru):
    """Two texts, read by the same layers."""
    one, other = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    embed, read = K.Embedding(30, 6, mask_zero=True), gru(8, go_backwards=True)
    left, right = read(embed(one)), read(embed(other))
    both = K.Concatenate()([K.Multiply()([left, right]), K.Subtract()([left, right])])
    return keras.Model([one, other], K.Dense(1, activation="sigmoid")(both))


def ticket(gru):
    """Title, body and features in; two outputs."""
    title, body = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    tags = keras.Input((4,))
    hidden = K.Concatenate()(
        [gru(6)(K.Embedding(30, 5)(title)), gru(5)(K.Embedding(30, 5)(body)), tags]
    )
    hidden = K.LayerNormalization()(hidden)
    return keras.Model(
        [title, body, tags], [K.Dense(1, activation="sigmoid")(hidden), K.Dense(3)(hidden)]
    )


NATIVE = (
    next_character,
    review_classifier,
    weather,
    several_days_ahead,
    addition,
    translation,
    waveform,
    video,
    document,
    picture_by_rows,
    anomalies,
    similarity,
    ticket,
)
"""Those that `to_onnx_model` can write: all layers are on its list."""

ALL = (*NATIVE, attentive_translation, speech)
