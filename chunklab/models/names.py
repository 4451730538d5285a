"""What a model is called wherever its name is kept or shown; for recordings, chunks and reports. Cost: none."""

from pathlib import PurePosixPath, PureWindowsPath


def plain_name(model: str) -> str:
    """What to call a model: where a server calls it by its file, no folder of the machine.

    >>> plain_name("/models/tiny.gguf"), plain_name("org/tiny")
    ('tiny.gguf', 'org/tiny')
    """
    path = next((kind(model) for kind in (PurePosixPath, PureWindowsPath) if kind(model).is_absolute()), None)
    return path.name if path else model
