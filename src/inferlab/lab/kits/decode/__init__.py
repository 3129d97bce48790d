"""Labs on decoding: the calls of a language model, the roofline, kernel launches."""
