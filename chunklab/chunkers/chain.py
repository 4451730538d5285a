"""Chains of chunkers: each one splits the chunks of the one before, down to those that are searched.

For retrieval that finds by small chunks and answers with large ones: a sentence can match a question closely, and the
section around it says what it means. Each chunk names its parent, so that one climbs from what was found to what
explains it. Also for methods that are dear, or read only so much: a limit in tokens comes first, the model behind it.
After RAG4p's SplitterChain; there a chain in a chain forgets its parents, here it is the same as one long chain. Cost:
that of its chunkers, each of which reads the document once, piece by piece; a model is asked about each piece apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from chunklab.chunk import Chunk, Chunker, Span, check_choice, check_id, check_text


def chunk_levels(text: str, splitters: Sequence[Chunker], doc_id: str = "doc") -> list[list[Chunk]]:
    """Split a text with the first chunker, and what each gives with the next one.

    Args:
        text: the document.
        splitters: the chunkers, one at least.
        doc_id: the document's id.

    Returns:
        The chunks of each chunker, in the order of their parents. All places are places in the document.

    >>> from chunklab import ParagraphChunker, SentenceChunker
    >>> for level in chunk_levels("One. Two.\\n\\nThree.", [ParagraphChunker(9), SentenceChunker(6)]):
    ...     print([(chunk.id, chunk.start, chunk.text) for chunk in level])
    [('doc_0', 0, 'One. Two.'), ('doc_1', 11, 'Three.')]
    [('doc_0_0', 0, 'One.'), ('doc_0_1', 5, 'Two.'), ('doc_1_0', 11, 'Three.')]
    """
    # A chain names its chunks itself: order and families are read off the ids, whichever a chunker gives.
    levels = [[replace(c, id=f"{doc_id}_{place}") for place, c in enumerate(splitters[0].chunk(text, doc_id))]]
    for splitter in splitters[1:]:
        levels.append([child for parent in levels[-1] for child in children(text, parent, splitter)])
    return levels


def children(text: str, parent: Chunk, splitter: Chunker) -> list[Chunk]:
    """Split what the document has at the place of a chunk.

    Args:
        text: the document.
        parent: the chunk. If its text was rewritten, it is the document's that is split all the same.
        splitter: the chunker.

    Returns:
        Its children, with their places in the document; metadata["spans"] too, where a method gives them.

    >>> from chunklab import SentenceChunker
    >>> [child] = children("So: it rains.", Chunk("rain", 4, 13, "doc", "doc_1"), SentenceChunker())
    >>> child.text, child.start, child.end, child.id, child.parent_id
    ('it rains.', 4, 13, 'doc_1_0', 'doc_1')
    """
    found = []
    for place, child in enumerate(splitter.chunk(text[parent.start : parent.end], parent.id)):
        metadata = dict(child.metadata)
        if "spans" in metadata:
            metadata["spans"] = [(parent.start + start, parent.start + end) for start, end in metadata["spans"]]
        start, end = parent.start + child.start, parent.start + child.end
        family: dict[str, Any] = {"document": parent.document, "id": f"{parent.id}_{place}", "parent_id": parent.id}
        found.append(replace(child, start=start, end=end, metadata=metadata, **family))
    return found


def depth_first(levels: Iterable[Sequence[Chunk]]) -> list[Chunk]:
    """The chunks of several levels as one list: each parent before its children, and these before its next sibling.

    >>> from chunklab import ParagraphChunker, SentenceChunker
    >>> levels = chunk_levels("One. Two.\\n\\nThree.", [ParagraphChunker(9), SentenceChunker(6)])
    >>> [chunk.id for chunk in depth_first(levels)]
    ['doc_0', 'doc_0_0', 'doc_0_1', 'doc_1', 'doc_1_0']
    """
    return sorted((chunk for level in levels for chunk in level), key=_path)


def _path(chunk: Chunk) -> list[int]:
    """The numbers in a chunk's id: [3, 0] of "manual_3_0"."""
    return [int(number) for number in chunk.id[len(chunk.document) + 1 :].split("_")]


class SplitterChain(Chunker):
    """Chunkers, each of which splits the chunks of the one before.

    `chunk` gives the chunks of the first chunker and of the last, parents before their children: "doc_0", "doc_0_0",
    "doc_0_1", "doc_1", …. What LangChain asks for (`split_text`, `split_documents`, …), and `spans`, are the last level
    alone, which is what one embeds; a metadata "parent_id" says where each belongs.

    - `index` and `total` count the children of one parent. What is not divided further has one child, the same but for
      white space at its edges: all ids of a level have as many numbers as it is deep.
    - `parent_id` is the id without its last number, also where the parent's level is not given; to reach a level above
      that, take off one number more.
    - Metadata are a chunk's own: the path of a section stands in the section.
    - What is split is the document's text at a chunk's place. So a method that rewrites, such as PropositionChunker,
      gives its own words in the last place; in an earlier one, the next chunker reads the sentences that they are from.
    - Where chunks overlap, the children of both have what they share: let only the last chunker overlap, unless that is
      wanted.
    - A chain in a chain is the same as its chunkers in its place: the outermost alone decides which levels are given.

    Args:
        splitters: the chunkers, from the largest chunks to the smallest; one at least.
        include_all_chunks: give the levels between the first and the last too.

    Raises:
        ValueError: no chunkers, or something that is none.

    Sections, their paragraphs, their sentences:

    >>> from chunklab import HeadingChunker, LLMChunker, ParagraphChunker, SemanticChunker, SentenceChunker
    >>> text = "# Cats\\n\\nThey purr. They sleep.\\n\\n# Dogs\\n\\nThey bark."
    >>> chain = SplitterChain([HeadingChunker(1, 9, 9), ParagraphChunker(24), SentenceChunker(12)])
    >>> for chunk in chain.chunk(text, "pets"):
    ...     print(chunk.id, repr(chunk.text))
    pets_0 '# Cats\\n\\nThey purr. They sleep.'
    pets_0_0_0 '# Cats'
    pets_0_1_0 'They purr.'
    pets_0_1_1 'They sleep.'
    pets_1 '# Dogs\\n\\nThey bark.'
    pets_1_0_0 '# Dogs'
    pets_1_0_1 'They bark.'

    As many tokens as a model reads, then groups of one meaning:

    >>> from chunklab import embeddings, tokens
    >>> limited = SentenceChunker(256, length_function=tokens("minilm"))
    >>> chain = SplitterChain([limited, SemanticChunker(embeddings("static"), number_of_chunks=2)])
    >>> chain.split_text("The cat sleeps. The cat purrs. Banks raised interest rates.")
    ['The cat sleeps. The cat purrs.', 'Banks raised interest rates.']

    Sections, in which a language model finds the subjects:

    >>> from langchain_core.language_models import FakeListChatModel
    >>> model = FakeListChatModel(responses=['{"starts": [3]}', '{"starts": []}'])
    >>> SplitterChain([HeadingChunker(1, 9, 9), LLMChunker(model)]).split_text(text)
    ['# Cats\\n\\nThey purr.', 'They sleep.', '# Dogs\\n\\nThey bark.']
    """

    def __init__(self, splitters: Iterable[Chunker], include_all_chunks: bool = False) -> None:
        self._splitters = check_splitters(splitters)
        check_choice("include_all_chunks", include_all_chunks, (False, True))
        self._include_all = bool(include_all_chunks)
        super().__init__()

    def chunk(self, text: str, doc_id: str = "doc") -> list[Chunk]:
        """Cut one text.

        Args:
            text: the document.
            doc_id: its id, kept in every chunk.

        Returns:
            The chunks of the first and the last level, or of all, each parent before its children; none for a blank
            text.

        Raises:
            ValueError: a text or an id that is not a str.
        """
        levels = chunk_levels(text, self._splitters, doc_id)
        return depth_first(levels if self._include_all else [levels[0], *levels[1:][-1:]])

    def spans(self, text: str) -> list[Span]:
        """Where the chunks of the last level start and end, in the order of their parents."""
        return [(c.start, c.end) for c in chunk_levels(text, self._splitters)[-1]]

    def split_text(self, text: str) -> list[str]:
        """The texts of the last level, as LangChain asks for them."""
        return [c.text for c in chunk_levels(text, self._splitters)[-1]]

    def _embedded(self, text: str, doc_id: str) -> list[Chunk]:
        """The last level, which is what LangChain is to have."""
        check_id(doc_id)
        return chunk_levels(check_text(text), self._splitters, doc_id)[-1]


def check_splitters(splitters: Any) -> list[Chunker]:
    """The chunkers as a list, those of a chain in its place; a ValueError unless they are chunkers, one at least."""
    if isinstance(splitters, (str, Chunker)) or not isinstance(splitters, Iterable):
        raise ValueError(f"splitters={splitters!r:.80}: must be a list of chunkers")
    chunkers: list[Chunker] = []
    for place, splitter in enumerate(splitters):
        if not isinstance(splitter, Chunker):
            raise ValueError(
                f"splitters[{place}]={splitter!r:.80}: must be a chunklab.Chunker, whose chunks know their places (for "
                "LangChain's RecursiveCharacterTextSplitter, take RecursiveChunker)"
            )
        chunkers += splitter._splitters if isinstance(splitter, SplitterChain) else [splitter]
    if not chunkers:
        raise ValueError(f"splitters={splitters!r:.80}: must hold one chunker at least")
    return chunkers
