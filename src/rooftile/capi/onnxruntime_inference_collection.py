"""Sessions and values under the module in which onnxruntime defines them."""

from rooftile.session import InferenceSession, IOBinding, OrtValue, get_available_providers

__all__ = ["IOBinding", "InferenceSession", "OrtValue", "get_available_providers"]
