"""One file format a file: what `chunklab.documents` stands on."""
