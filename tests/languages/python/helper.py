"""Another file of the same agent: what is raised here is told with its place."""


def boom(words):
    word = words["foo"]
    # The line below is the one that is told.
    raise ValueError(f"bad word {word}")
