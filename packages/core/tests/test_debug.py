"""weft.debug: what happens, how often, in which order.

Invariant: effects are counted by what Python saw.
"""

import numpy as np

import weft as wf


def test_callback_sees_trees_of_values():
    seen = []

    def f(x):
        wf.debug.callback(lambda a, *, b: seen.append((a["k"], b)), {"k": x}, b=x + 1)
        return x

    f = wf.jit(f)
    assert float(f(2.0)) == 2.0
    ((a, b),) = seen
    assert isinstance(a, np.ndarray) and float(a) == 2.0 and float(b) == 3.0
    f(5.0)
    assert [float(a) for a, _ in seen] == [2.0, 5.0]


def test_ordered_callbacks_keep_their_order():
    seen = []

    def body(i, s):
        wf.debug.callback(lambda i: seen.append(int(i)), i, ordered=True)
        return s

    wf.jit(lambda: wf.lax.fori_loop(0, 5, body, 0.0))()
    assert seen == [0, 1, 2, 3, 4]


def test_print(capsys):
    wf.debug.print("now {}", np.float32(1.5))
    wf.jit(lambda x: wf.debug.print("x={x:.2f} {}", x * 2, x=x))(1.0)
    assert capsys.readouterr().out == "now 1.5\nx=1.00 2.0\n"
