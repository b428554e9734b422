"""Devices: data sheets, what they reach, how their memory is divided, and where a measurement was made."""
