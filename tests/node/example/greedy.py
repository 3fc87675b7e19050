"""Takes more memory than any limit of a small driver."""

kept = [bytearray(64 << 20) for _ in range(64)]
