"""Conversion of functions to and from TensorFlow, as one StableHLO operation or as a graph.

    f_tf = plait.export.tensorflow.to_tf(f, polymorphic_shapes="b, ...")
    tf.function(f_tf)(tf.ones((4, 3)))            # runs, compiles, is saved, is differentiated

    library      TensorFlow, imported when it is first needed
    arguments    types of both sides
    graph        StableHLO as ordinary operations
    operations   exported functions as operations, with derivatives
    conversion   to_tf
    saving       save
    tflite       to_tflite
    importing    from_tf
    calling      call_tf

Invariant: TensorFlow is imported when a function is first called; Plait does not depend on it.
"""

from .calling import call_tf
from .conversion import to_tf
from .importing import FromTensorFlow, from_tf
from .saving import save, save_artifact
from .tflite import to_tflite

__all__ = ["FromTensorFlow", "call_tf", "from_tf", "save", "save_artifact", "to_tf", "to_tflite"]
