"""How a trace is shown: as text, as HTML in a notebook, live while it runs, as a Perfetto timeline."""
