# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_export.tensorflow import FromTensorFlow as FromTensorFlow
from plait_export.tensorflow import call_tf as call_tf
from plait_export.tensorflow import from_tf as from_tf
from plait_export.tensorflow import save as save
from plait_export.tensorflow import save_artifact as save_artifact
from plait_export.tensorflow import to_tf as to_tf
from plait_export.tensorflow import to_tflite as to_tflite
