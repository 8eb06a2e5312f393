"""Programs of keras, on its jax backend.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
import numpy as np
from keras import layers, ops

rng = np.random.default_rng(0)
X = rng.normal(size=(32, 6)).astype("float32")
Y = (X[:, :3].argmax(1)).astype("int32")
IMAGES = rng.normal(size=(4, 8, 8, 3)).astype("float32")
WORDS = rng.integers(0, 11, size=(4, 7)).astype("int32")


def readme():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(3)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss, metrics=["accuracy"])
    history = model.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0)
    return history.history["loss"], model.evaluate(X, Y, verbose=0), model.predict(X, verbose=0)


def convolutions():
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 3, padding="same", activation="gelu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.DepthwiseConv2D(3),
            layers.Conv2DTranspose(2, 2, strides=2),
            layers.GlobalAveragePooling2D(),
        ]
    )
    return model(IMAGES, training=True), model(IMAGES)


def recurrent_nets():
    keras.utils.set_random_seed(2)
    x = X.reshape(4, 8, 6)
    lstm, gru = layers.LSTM(5, return_sequences=True), layers.GRU(4)
    both = layers.Bidirectional(layers.SimpleRNN(3))
    return lstm(x), gru(x), both(x)


def attention():
    keras.utils.set_random_seed(3)
    x = layers.Embedding(11, 8)(WORDS)
    y = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    return y, layers.LayerNormalization()(x + y), layers.Attention()([x, y])


def functional_model():
    keras.utils.set_random_seed(4)
    a, b = keras.Input((6,)), keras.Input((6,))
    shared = layers.Dense(4, activation="tanh")
    merged = layers.Concatenate()([shared(a), layers.Dropout(0.5)(shared(b))])
    model = keras.Model([a, b], layers.Dense(1, kernel_regularizer="l2")(merged))
    model.compile(optimizer="rmsprop", loss="mse")
    losses = [model.train_on_batch([X, -X], Y[:, None]) for _ in range(3)]
    return losses, model.count_params()


def stateless_training():
    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(4, "relu"), layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)

    def loss(trained, rest, x, y):
        out, rest = model.stateless_call(trained, rest, x)
        return jnp.mean((out[:, 0] - y) ** 2), rest

    @jax.jit
    def step(state):
        trained, rest, own = state
        (value, rest), grads = jax.value_and_grad(loss, has_aux=True)(trained, rest, X, Y)
        trained, own = optimizer.stateless_apply(own, grads, trained)
        return value, (trained, rest, own)

    state = (
        [v.value for v in model.trainable_variables],
        [v.value for v in model.non_trainable_variables],
        [v.value for v in optimizer.variables],
    )
    losses = []
    for _ in range(4):
        value, state = step(state)
        losses.append(value)
    return losses


def operations():
    x = ops.convert_to_tensor(X)
    return (
        ops.softmax(x), ops.logsumexp(x, axis=1), ops.top_k(x, 2), ops.one_hot(Y, 3),
        ops.segment_sum(x, Y, 3), ops.einsum("ij,kj->ik", x, x), ops.svd(x)[1],
        ops.scan(lambda c, v: (c + v, c * v), x[0], x)[0], ops.slice(x, (1, 2), (3, 2)),
        ops.image.resize(IMAGES, (4, 5)), ops.erf(x), ops.nn.silu(x),
    )  # fmt: skip


def losses_and_metrics():
    p, q = ops.softmax(X[:, :3]), ops.one_hot(Y, 3)
    auc = keras.metrics.AUC(num_thresholds=20)
    auc.update_state(q[:, 0], p[:, 0])
    names = ("categorical_crossentropy", "kl_divergence", "huber", "cosine_similarity", "log_cosh")
    return [getattr(keras.losses, n)(q, p) for n in names], auc.result()


def random_numbers():
    seed = keras.random.SeedGenerator(7)
    return keras.random.normal((5,), seed=seed), keras.random.uniform((5,), seed=seed)
