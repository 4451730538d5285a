# %% [markdown]
# # Choosing
#
# **Minutes:** 75 · **Before:** lesson 08
#
# You can cut in fifteen ways, in any size, with or without overlap, and search in five ways with two models. You have a
# week, and a boss who asks: which?
#
# When you have done this lesson you will be able to
#
# - turn all knobs at once, and say which of them moves the result, and how sure that is;
# - choose the best of many without being fooled by luck;
# - read a scoreboard by kind of document and question, and know which cells say nothing;
# - say what each method costs, and choose for documents of your own.

# %% tags=["scaffold"]
import shutil
import warnings
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from IPython.display import display

from chunklab import ChunkIndex, ClusterChunker, CodeChunker, FixedSizeChunker, HeadingChunker, Hybrid, LLMChunker
from chunklab import LumberChunker, MultiVectorIndex, ParagraphChunker, Parent, PropositionChunker, RecursiveChunker
from chunklab import Scoreboard, SemanticChunker, SemanticWindowChunker, SentenceChunker, SlidingWindowChunker
from chunklab import SnappingWindowChunker, SplitterChain, TopN, Window, add_context, chat, embeddings, halves
from chunklab import load_corpus, load_questions, plot_heatmap, plot_scores, recommend, sweep, variance_explained
from chunklab.corpus import DATA
from chunklab.exercises import check

corpus, questions, static = load_corpus(), load_questions(), embeddings("static")

# %% [markdown]
# ## The flaw: one setting
#
# Lesson 08 found 10.8 points between two arms: *of these settings*. The same two methods in other ones, each with 1,000
# tokens a question:

# %%
def by_meaning(chunks, model):
    return TopN(ChunkIndex(chunks, model), k=30, max_tokens=1000)


def by_both(chunks, model):
    return Hybrid(ChunkIndex(chunks, model), k=30, max_tokens=1000)


searches, board = {"meaning": by_meaning, "both": by_both}, Scoreboard(static, k=30)
for size, search in product((300, 1200), searches):
    board.add(f"semantic {size} {search}", SemanticChunker(static, max_chunk_size=size), index=searches[search])
    board.add(f"recursive {size} {search}", RecursiveChunker(size), index=searches[search])
names = list(board.rows)
board.differences(zip(names[::2], names[1::2]))
