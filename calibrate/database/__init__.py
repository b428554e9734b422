"""From a kept database of measured operators (PyPI's aiconfigurator-core) to a profile of whole steps."""
