"""The lab on memory: peaks with a knob on and off, and which component is on the device when."""
