"""Chunking for retrieval-augmented generation: every method of the course, tested and ready to copy."""

from importlib import import_module
from typing import Any

_WHERE = {
    "choosing": ["halves", "variance_explained"],
    "chunk": ["Chunk", "Chunker"],
    "chunkers.added_headings": ["aadd_headings", "add_headings"],
    "chunkers.agentic": ["AgenticChunker"],
    "chunkers.asking": ["LLMError"],
    "chunkers.csv_file": ["write_csv"],
    "chunkers.chain": ["SplitterChain"],
    "chunkers.cluster": ["ClusterChunker"],
    "chunkers.code": ["CodeChunker"],
    "chunkers.contextual": ["aadd_context", "add_context"],
    "chunkers.fixed": ["FixedSizeChunker", "SlidingWindowChunker"],
    "chunkers.heading": ["HeadingChunker"],
    "chunkers.keep_or_split": ["KeepOrSplitChunker"],
    "chunkers.llm": ["LLMChunker"],
    "chunkers.lumber": ["LumberChunker"],
    "chunkers.paragraph": ["ParagraphChunker"],
    "chunkers.propositions": ["PropositionChunker"],
    "chunkers.recursive": ["RecursiveChunker"],
    "chunkers.semantic": ["SemanticChunker"],
    "chunkers.semantic_window": ["SemanticWindowChunker"],
    "chunkers.sentence": ["SentenceChunker", "SnappingWindowChunker", "sentence_spans"],
    "corpus": ["find_quote", "load_benchmark", "load_corpus", "load_novel", "load_questions"],
    "curves": ["plot_distances"],
    "documents": ["Document", "read_document"],
    "evaluation": ["Scoreboard", "precision_omega", "span_scores"],
    "explorer": ["explore"],
    "figures": ["plot_hits", "plot_sizes", "plot_windows"],
    "hybrid": ["Hybrid"],
    "judging": ["aragas_scores", "ragas_scores"],
    "models.embeddings": ["embeddings"],
    "models.llm": ["chat", "written_by"],
    "models.late": ["late_embeddings"],
    "models.tokens": ["tokens"],
    "multi_vector": ["MultiVectorIndex"],
    "progress_page": ["progress"],
    "recommending": ["recommend"],
    "retrieval": ["ChunkIndex"],
    "score_figures": ["plot_heatmap", "plot_scores", "plot_sweep"],
    "scale": ["chunk_corpus", "index_from_parquet", "read_chunks", "start_ray"],
    "settings": ["chunker_from_env"],
    "strategies": ["Parent", "TopN", "WholeDocument", "Window", "small_to_big"],
    "sweeping": ["sweep"],
    "testset": ["amake_testset", "make_testset"],
    "view": ["compare_chunks", "show_chunks"],
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that importing the package stays quick."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'chunklab' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(f"chunklab.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
