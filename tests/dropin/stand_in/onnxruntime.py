"""Put in front of the path, this makes `import onnxruntime` give rooftile, its modules included."""

import sys

import rooftile

sys.modules[__name__] = rooftile
