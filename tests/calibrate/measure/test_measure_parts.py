"""What surrounds a measurement: the floor of a step, the driver's readings, and the name of a machine."""

from __future__ import annotations

import ctypes

import pytest

from calibrate.hardware.environment import processor
from calibrate.hardware.nvml import Nvml, said, state_reader
from calibrate.hardware.roofline_bound import lower_bound_ns
from calibrate.measure.points import Point
from calibrate.models.decoder_shape import SHAPES

H200 = {"read_bytes_per_s": 4.3e12, "matrix_flop_per_s": 790e12}


@pytest.mark.parametrize(
    ("point", "milliseconds"),
    [
        # 15.01 GB of streamed weights and 131,072 bytes of cache a position, over 4.3 TB/s.
        (Point("decode", (2048,)), 3.55),
        (Point("decode", (2048,) * 64), 7.49),
        (Point("decode", (2048,) * 256), 19.47),
        # 6.979 billion multiply-adds a position, and 4 x 4,096 x 32 operations for each of 33.6 million pairs of
        # positions: 1.143e14 + 1.76e13 operations over 790 TFLOP/s.
        (Point("chunk", (), ((0, 8192),)), 167.0),
    ],
)
def test_the_floor_of_llama_on_a_device_with_known_ceilings(point, milliseconds):
    found = lower_bound_ns(SHAPES["llama-3.1-8b"], "bfloat16", point, H200)
    assert found / 1e6 == pytest.approx(milliseconds, rel=0.01)


class Library:
    """NVML as it would answer, or not."""

    def __init__(self, reasons=0, code=0):
        self.reasons = reasons
        self.code = code
        self.called = []

    def __getattr__(self, name):
        def call(*arguments):
            self.called.append(name)
            values = {
                "nvmlDeviceGetClockInfo": 1980,
                "nvmlDeviceGetPowerUsage": 512_500,
                "nvmlDeviceGetTemperature": 61,
                "nvmlDeviceGetCurrentClocksThrottleReasons": self.reasons,
            }
            if name in values:
                if self.code:
                    return self.code
                ctypes.cast(arguments[-1], ctypes.POINTER(ctypes.c_uint)).contents.value = values[name]
            return 0

        return call


def test_a_gpus_clocks_and_power_are_read_and_nothing_is_set():
    library = Library(reasons=0x4 | 0x40 | 0x1)
    found = Nvml(0, library).read_state()
    assert found == {
        "graphics_mhz": 1980,
        "memory_mhz": 1980,
        "power_w": 512.5,
        "temperature_c": 61,
        "throttled": ["power cap", "thermal, hardware"],
    }
    assert all(name.startswith(("nvmlInit", "nvmlDeviceGet")) for name in library.called)


def test_the_driver_says_its_version():
    class Driver(Library):
        def nvmlSystemGetDriverVersion(self, text, size):  # noqa: N802
            assert size.value == len(text)
            text.value = b"580.65.06"
            return self.code

    assert Nvml(0, Driver()).driver() == "580.65.06"
    refused = Driver()
    found = Nvml(0, refused)
    refused.code = 3
    assert found.driver() is None


def test_what_a_gpu_does_not_tell_is_not_made_up():
    assert set(Nvml(0, Library(code=3)).read_state().values()) == {None}
    assert said(0) == []


def test_without_a_gpu_nothing_is_seen():
    assert state_reader("cpu")() == {}


def test_the_name_of_a_machine(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: A CPU of 1999\n")
    assert processor(info) == "A CPU of 1999"
    assert processor(tmp_path / "none")
