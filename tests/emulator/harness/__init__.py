"""Python side of the emulator: NVRTC, the driver API by ctypes, and replayable cases."""
