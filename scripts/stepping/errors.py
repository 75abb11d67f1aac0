"""How scripts/measure_step ends where it cannot go on: a sentence and an exit code."""

NOT_AVAILABLE, USAGE, NOT_WRITTEN, INTERRUPTED = 5, 6, 11, 130


class Refused(Exception):
    """One sentence, with the remedy."""

    def __init__(self, sentence, code=USAGE):
        super().__init__(sentence)
        self.code = code
