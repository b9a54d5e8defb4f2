"""Second file of the same agent: an exception raised here is reported with its position."""


def boom(words):
    word = words["foo"]
    # The line below is the reported one.
    raise ValueError(f"bad word {word}")
