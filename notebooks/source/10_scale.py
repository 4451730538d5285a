# %% [markdown]
# # Beyond one machine
#
# **Minutes:** 60 · **Before:** lesson 09
#
# Your folder has become a million documents. What takes the time, what breaks, and who notices?
#
# When you have done this lesson you will be able to
#
# - find out where the seconds go, before you make anything faster;
# - cut and embed on all cores, and get the same chunks as from one process;
# - lose nothing where a file or a worker fails, and do only what is new the next time;
# - reckon what ten terabytes take, and bring the result into an index.

# %% [markdown] tags=["speaker"]
# **Opening · 2 min** Ask whose job has died close to its end, and what was lost: hours, trust, or records, and nobody
# noticed. The last is the subject. Ray starts once below and takes some seconds; nobody needs a cluster, or has to
# install anything.

# %% tags=["scaffold"]
import hashlib
import io
import logging
import os
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import ray.data

import chunklab as cl
from chunklab import RecursiveChunker, chunk_corpus
from chunklab.corpus import DATA
from chunklab.exercises import check

# %% [markdown]
# ## The flaw: days, on one machine
#
# Lesson 09 ended with 60 million chunks and days of embedding. Ten terabytes do not fit in a lesson, so here is a small part:
# four copies of our corpus, each with a line of its own. What happens to a document is the same.

# %% [markdown] tags=["speaker"]
# **The flaw · 2 min** Four copies of our corpus stand for a million documents. Ask why each copy gets a line of its
# own: because from here on a text is known by its content, and equal texts are one. Then go on; there is nothing to see
# yet.

# %%
corpus, static, minilm = cl.load_corpus(), cl.embeddings("static"), cl.embeddings("minilm", cache=False)
place, chunker = TemporaryDirectory(), RecursiveChunker(600)
folder, table = Path(place.name, "docs"), Path(place.name, "table")
folder.mkdir()
for number in range(4):
    for name, text in corpus.items():
        Path(folder, f"{number}_{name}").write_text(f"Copy {number}.\n\n{text}", encoding="utf-8")
paths = sorted(folder.iterdir())
print(len(paths), "files,", sum(path.stat().st_size for path in paths) // 1000, "kB")

# %% [markdown]
# ## Predict
#
# 1. Reading, cutting, embedding: which takes most of a document's time? With a table of word vectors, and with MiniLM?
# 2. Twice the cores: how many times as fast?
# 3. A worker is killed half-way. How many chunks are missing at the end, how many there twice?
# 4. Of 32 files one changes, one goes, and one is new. How many are cut?
#
# ## Build it
#
# ### Profile first
#
# Nobody should make faster what takes no time. One process, one stage after the other. (These cells show *your* machine's
# seconds; ours are what you see on the page.)

# %% [markdown] tags=["speaker"]
# **Predict · 4 min** First: reading, say those who have met slow disks. Second: twice. Third: some missing or some
# doubled; ask which of the two is worse. Fourth: three. Write all four down, as cells below print the answer to each.

# %% [markdown] tags=["speaker"]
# **Build it · 5 min** Before the stopwatch everybody draws a bar in three parts, reading, cutting, embedding, once for
# each model. Then run it on the projector. The seconds are this machine's, so read shares. With MiniLM the bar is one
# colour. Ask what a chunker ten times as fast would win: quiz, question 1.

# %% tags=["nbval-ignore-output"]
def clocked(make):
    begin = time.perf_counter()
    return make(), time.perf_counter() - begin


texts, reading = clocked(lambda: [cl.read_document(path).text for path in paths])
chunks, cutting = clocked(lambda: [c.text for text in texts for c in chunker.chunk(text)])
_, table_of_words = clocked(lambda: static.embed_documents(chunks))
_, transformer = clocked(lambda: minilm.embed_documents(chunks[:128]))  # a part, scaled up below
_, pdf = clocked(lambda: cl.read_document(DATA / "corpus" / "throat_survey.pdf"))
seconds = {"reading": reading, "cutting": cutting, "static": table_of_words, "MiniLM": transformer * len(chunks) / 128}
pd.Series(seconds | {"reading one PDF besides": pdf}).round(2)

# %% [markdown]
# Embedding, by far, where files are plain text: a table of word vectors takes more than all the rest, a transformer nearly
# everything (your first guess). But one PDF of four pages takes longer to read than all these files: profile yours.
#
# ### Batch, and never twice
#
# Two things help before a second machine. A model takes many texts at once, those of a length together, so that little
# is padding; on this processor that gains little, on a graphics card or over a network much. And what has been embedded is
# known by its *content*: the same text is never embedded again.

# %% [markdown] tags=["speaker"]
# **Batch, and never twice · 5 min** The batch may gain little on few cores: say so before it runs, and do not defend
# the number. Content is the real lever: the class writes `embedded` in a few lines. What does the second call print?
# And what does one changed word cost, which stands in four copies? 1.

# %% tags=["nbval-ignore-output"]
some = sum((text.split(". ") for text in chunks[:24]), [])  # sentences, long and short
_, one_by_one = clocked(lambda: [minilm.embed_documents([text]) for text in some])
_, together = clocked(lambda: minilm.embed_documents(some))
print(f"in a batch {one_by_one / together:.1f} times as fast")

# %%
known = {}


def embedded(texts):
    names = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    new = {name: text for name, text in zip(names, texts) if name not in known}
    known.update(zip(new, static.embed_documents(list(new.values()))))
    return len(new)


print(len(chunks), "chunks:", embedded(chunks), "embedded, then", embedded(chunks))
print("a word changed in all copies:", embedded([text.replace("sixpence", "threepence") for text in chunks]), "embedded")

# %% [markdown]
# The copies share nearly all chunks. Such a cache pays wherever whole chunks repeat. (Ours is on disk, and its key names the
# model, too.)
#
# ### Many workers
#
# **Ray Data** streams *blocks*, groups of rows, through *stages*. A stage that keeps nothing is a function, `cut`, and runs
# wherever a core is free. One that must load a model first is a class, and runs as *actors*, which live on and load once.
# Blocks go from one stage to the next while others are still being read, so that nobody holds the corpus.

# %% [markdown] tags=["speaker"]
# **Many workers · 9 min** Draw two stages and a belt between them: a block moves on while others are still read. Where
# is the model to be loaded? Let the wrong answer, in the function, be priced: once a batch. Type `cut` and `Embed`;
# talk while Ray starts. Then ask what the dozen lines lack. The class should find two of the three.

# %%
logging.getLogger("ray.data").setLevel(logging.ERROR)
ray.data.DataContext.get_current().enable_progress_bars = False
cl.start_ray(2)


def cut(row):
    document = cl.read_document(row["path"])
    chunks = chunker.chunk(document.text, document.id)
    return [{"document": c.document, "start": c.start, "text": c.text} for c in chunks]


class Embed:
    def __init__(self):
        self.model = cl.embeddings("static")

    def __call__(self, batch):
        return batch | {"vector": self.model.encode(list(batch["text"]))}

# %%
files = ray.data.from_items([{"path": str(path)} for path in paths], override_num_blocks=4)
stream = files.flat_map(cut, num_cpus=0.5)
# Half a core each, so that both stages find room on few cores.
stream = stream.map_batches(Embed, batch_size=256, compute=ray.data.ActorPoolStrategy(size=1), num_cpus=0.5)
# For the check alone we gather all rows here.
by_hand = pd.DataFrame(stream.take_all()).sort_values(["document", "start"], ignore_index=True)
print(len(by_hand), "rows:", *by_hand.columns)

# %% [markdown]
# A dozen lines. What is missing? A file that cannot be read ends it all. A run that ends half-way begins anew. The next run,
# too, does everything. `chunk_corpus` has the same two stages, and these three things besides. Here is its first run.

# %%
Path(folder, "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
run = first_run = chunk_corpus(folder, chunker, static, table)
print(f"{run.documents} documents, {run.chunks} chunks, {run.errors} error, {run.new} new, {run.kept} kept")
print(pd.read_parquet(table / "errors.parquet").loc[0, "error"])

# %% [markdown]
# ## Check it: one process, and LangChain's index
#
# One process, our dozen lines, `chunk_corpus`: the same chunks? Ids, places, vectors?

# %% [markdown] tags=["speaker"]
# **Check it · 6 min** Three ways, one set of chunks: name what could have differed, ids, places, vectors. Then the
# books. One file changes, one goes, one is new: everybody predicts both lines before they are printed. A change is
# added and deleted for LangChain, new for us. The same books in other words.

# %%
alone = [c for path in paths for c in chunker.chunk(cl.read_document(path).text, path.name)]
alone.sort(key=lambda c: (c.document, c.start))
written = cl.read_chunks(table)
print("one process:", written == alone, "by hand:", [c.text for c in alone] == by_hand["text"].tolist())
index = cl.index_from_parquet(table, static)
print("vectors:", np.allclose(index.vectors, static.encode([c.text for c in index.chunks]), atol=1e-6))

# %% [markdown]
# And the second run: one file changes, one goes, one is new. LangChain's indexing API keeps books in the same way, by hashes of
# content, and cleans up. Do both count the same?

# %%
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager
from langchain_core.indexing import index as langchain_index
from langchain_core.vectorstores import InMemoryVectorStore

books, store = InMemoryRecordManager("docs"), InMemoryVectorStore(static)
books.create_schema()


def theirs():
    files = [path for path in sorted(folder.iterdir()) if path.suffix != ".pdf"]
    documents = [Document(path.read_text(encoding="utf-8"), metadata={"source": path.name}) for path in files]
    return langchain_index(documents, books, store, cleanup="full", source_id_key="source", key_encoder="sha256")

# %%
first = theirs()
Path(folder, "0_leaflet.txt").write_text("The Child hangs on Orrin.", encoding="utf-8")
Path(folder, "1_leaflet.txt").unlink()
Path(folder, "new.md").write_text("# Bells\n\nBrother hangs on Maw.", encoding="utf-8")
second, run = theirs(), chunk_corpus(folder, chunker, static, table)
print("theirs:", second["num_added"], "added,", second["num_deleted"], "deleted,", second["num_skipped"], "skipped")
print("ours:  ", run.new, "new,", run.removed, "removed,", run.kept, "kept")

# %% [markdown]
# The same books: a changed document is for LangChain one added and one deleted. (Your fourth guess: two, and the broken one
# is tried again, as in each run.)
#
# ## See it
#
# What came back from Parquet, on its text; then all workers' seconds.

# %% [markdown] tags=["speaker"]
# **See it · 2 min** One glance: what came back from Parquet is chunks on a text, as ever. Then the seconds of all
# workers beside the bars of the first cell. If you are late, this is what to cut first.

# %%
manual = Path(folder, "0_tidewright_manual.md").read_text(encoding="utf-8")
cl.show_chunks([c for c in cl.read_chunks(table) if c.document == "0_tidewright_manual.md"], manual, limit=1200)

# %% tags=["nbval-ignore-output"]
pd.Series({name: first_run.seconds[name] for name in ("reading", "cutting", "embedding", "writing")}).round(2)

# %% [markdown]
# ## Measure it
#
# ### When do many workers pay?
#
# Workers must start, and load what they need; then each does its part. So time is a fixed cost and a slope. Here they are,
# from our benchmark page (two cores, the static model; the start is timed apart), beside two plain processes, each with half
# of the files:

# %% [markdown] tags=["speaker"]
# **Measure it · 5 min** Draw the two lines before the figure: one starts at nought and climbs, the other starts high
# and climbs more slowly. Where do they cross, and what moves the crossing? "A slower model" is worth waiting for.
# Second guess: 1.6 times. Have somebody say where the rest went.

# %%
fixed, slope = {"one": 0, "two, side by side": 0, "Ray, two cores": 14.5}, (0.288, 0.176, 0.18)  # seconds; seconds a MB
lines = [[(way, size, start + rise * size) for size in (75, 150, 300, 450)] for (way, start), rise in zip(fixed.items(), slope)]
print([f"{one[1]} MB: {one[2] / two[2]:.1f} times" for one, two in zip(lines[0], lines[2])], f"at most {0.288 / 0.18:.1f}")
cl.plot_sweep(pd.DataFrame(sum(lines, []), columns=["processes", "megabytes", "seconds"]), "megabytes", "seconds", "processes")

# %% [markdown]
# Below some 135 megabytes one process is quicker than Ray. Beyond, two cores win: 1.4 times at 450, never above 1.6 (your second
# guess). Two plain processes have 1.6 at any size, and nothing more; what Ray gives for its start comes below. A slower model
# moves the crossing to the left.
#
# ### A worker is killed
#
# Nobody's machine runs for ever. We kill a process that embeds, once, when it has written a part already.

# %% [markdown] tags=["speaker"]
# **A worker is killed · 5 min** Read `Doomed` aloud: its process dies once, when it has written a part. Third guess
# again, then run it. Nothing missing, nothing twice. The reason has two halves, and both should come from the class:
# work that can be done again, and a file that is there whole or not at all.

# %%
class Doomed(type(static)):
    """Word vectors, whose process dies once, at its second part."""

    calls = 0

    def encode(self, texts):
        self.calls += 1
        if self.calls == 2 and not mark.exists():
            mark.touch()
            os._exit(1)
        return super().encode(texts)

# %%
again, mark = Path(place.name, "killed"), Path(place.name, "mark")
with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):  # where Ray says that a worker died
    run = chunk_corpus(str(folder / "3_*"), chunker, Doomed(), again)
    ray.shutdown()
there, once = cl.read_chunks(again), [c for c in cl.read_chunks(table) if c.document.startswith("3_")]
print(f"killed: {mark.exists()}, missing {len(set(once) - set(there))}, twice {len(there) - len(set(there))}")

# %% [markdown]
# Nothing missing, nothing twice (your third guess). A block is a *pure* function of its files, so it can be done again; and a
# part is written beside its place and moved there in one step (on a file system that all machines share), under a name made
# from its files and settings. Done twice, it is one file. A document that kills its worker each time becomes, after three
# deaths, a row in the table of errors.
#
# ### Into an index
#
# Parquet is the hand-over. Nothing of it must be embedded again.
#
# *FAISS*, in memory, is what `index_from_parquet` gives: every vector is compared. From some million vectors take an index
# that looks at a part only (IVF by clusters, HNSW by a graph of neighbours), and measure what that loses.
#
# *pgvector* puts vectors beside the rows that you have in PostgreSQL: `COPY` the table in, then make the HNSW index, in that
# order. Filters are SQL, applied after the index: see that enough hits are left (iterative scans).
#
# *Qdrant*, *Milvus* and *Weaviate* are servers for vectors: upsert points in batches of some hundreds, document, start and end
# as their fields. Where ids must be UUIDs, make one from ours (`uuid5`): the same chunk again replaces itself.
#
# *OpenSearch* and *Elasticsearch* search words and vectors in one place (lesson 07's "both"): bulk requests, with our id as
# `_id`.
#
# In all of them: delete by document what is gone or changed, then add. Better, fill a second index and switch.

# %% [markdown] tags=["speaker"]
# **Into an index · 3 min** Do not read the list. Who has which store at work? Read only those paragraphs. One rule
# holds for all: delete by document before you add. Then the cell, before its explanation: why are four of five hits one
# passage? Copies fill the top.

# %%
index = cl.index_from_parquet(table, static)  # the first one still has what is gone
for hit in index.search("Upon what had Dr Fenn shut his book when the ship struck?", k=5):
    print(hit.chunk.document, hit.chunk.start, hit.chunk.text[:60])

# %% [markdown]
# Four of five hits are one passage: copies fill the top *k*. Know a text by its content here, too.
#
# ### To ten terabytes
#
# Arithmetic. Put in your own: what a core does in a second (ours are rounded down), what its hour costs.

# %% [markdown] tags=["speaker"]
# **To ten terabytes · 4 min** Estimates first, hours and money, for both models. Then everybody changes one number:
# machines, price, efficiency. Wait for the insight that more machines change the hours and not the bill. Last, the
# columns that nobody estimated: where do so many vectors live, and for how long?

# %%
def plan(terabytes, megabytes_a_second, machines=100, cores=16, dollars_a_core_hour=0.05, efficiency=0.75, numbers=384):
    core_hours = terabytes * 1e6 / megabytes_a_second / 3600 / efficiency
    billions = terabytes * 1e3 * len(chunks) / sum(map(len, texts))  # of chunks, with as many characters as ours
    row = {"hours": core_hours / machines / cores, "dollars": core_hours * dollars_a_core_hour}
    return row | {"billion chunks": billions, "TB of vectors": billions * numbers * 4 / 1e3}


rows = {"static, 2 MB/s": plan(10, 2, numbers=256), "MiniLM, 0.02 MB/s": plan(10, 0.02)}
pd.DataFrame(rows | {"MiniLM, one machine": plan(10, 0.02, machines=1)}).T.round(1)

# %% [markdown]
# The embedding model is what you pay for; cutting is not. So try sizes and methods on a sample, and embed once.
# `efficiency` is speed-up over cores: 1.6 with two is 0.8. Measure it at your size, on your
# graphics card if you have one. The result is the harder half: tens of terabytes of vectors need compression and many
# machines, for as long as somebody searches.
#
# ## Break it
#
# A better model comes out. What must be done again?

# %% [markdown] tags=["speaker"]
# **Break it · 3 min** Somebody wants to search the old vectors with the better model: let them run into the error, and
# read it aloud. What if nobody had checked? Hits, and no crash. Then what to watch each night, and which of it readers
# notice.

# %%
for how, model in (("static", static), ("minilm", minilm)):
    try:
        print(how, len(cl.index_from_parquet(table, model)), "chunks")
    except ValueError as error:
        print(how, "cannot search these: they have", str(error).partition(" have ")[2])

# %% [markdown]
# Every vector: two models must not stand in one index. A new chunker gives new chunks, too: `chunk_corpus` knows both, and does
# all again. So write the new table beside the old one, measure both on your gold questions, then switch. That is the last
# cost, and the reason why this course chose with care before it scaled.
#
# What to watch, when it runs every night: documents and chunks in, against yesterday; rows in the table of errors; the share of
# chunks that a model cannot read whole; memory of a worker; the age of the newest document; seconds a search; recall on the
# gold questions, after each run. The last ones are what your readers notice.
#
# ## Exercises
#
# **10.1 Recall.** 2 TB of text; a core embeds 0.5 MB a second; 20 machines of 8 cores; efficiency 0.8. How many hours? Write the
# calculation.
#
# <details><summary>Hint</summary>
#
# 2 million megabytes, divided by what all cores do in a second, by 3,600 and by the efficiency.
#
# </details>

# %% [markdown] tags=["speaker"]
# **Exercises · 2 min** 10.1 in class with a calculator; the slip is to multiply by the efficiency. 10.2 in pairs: the
# empty first group is where first versions go wrong. 10.3 at home.

# %% tags=["exercise"]
# BEGIN SOLUTION
hours = 2e6 / (0.5 * 20 * 8) / 3600 / 0.8
# END SOLUTION
# STARTER: hours = ...

# %% tags=["check"]
with check("10.1 Recall"):
    assert abs(hours - plan(2, 0.5, 20, 8, efficiency=0.8)["hours"]) < 0.01, "megabytes / (speed · machines · cores)"

# %% [markdown]
# **10.2 Apply.** A worker takes a group of files. Write `groups`: it puts sizes, in order, into lists whose sums are at most
# `most`; a file larger than `most` is a group of its own. No group is empty.
#
# <details><summary>Hint</summary>
#
# Keep the last group open: a size that does not fit any more opens the next one, unless the open one is empty.
#
# </details>

# %% tags=["exercise"]
def groups(sizes, most):
    # BEGIN SOLUTION
    found = []
    for size in sizes:
        if not found or sum(found[-1]) + size > most:
            found.append([])
        found[-1].append(size)
    return found
    # END SOLUTION
    # STARTER: raise NotImplementedError

# %% tags=["check"]
with check("10.2 Apply"):
    assert groups([3, 4, 9, 1, 1], 7) == [[3, 4], [9], [1, 1]], "9 is larger than 7, and stands alone"
    assert groups([], 7) == [] and groups([7, 1], 7) == [[7], [1]]

# %% [markdown]
# **10.3 Match the library exactly.** Write `books_of`: from dictionaries before and now, name to content, a dictionary of
# LangChain's: `num_added` (new or changed), `num_deleted` (gone or changed), `num_skipped`.
#
# <details><summary>Hint</summary>
#
# Compare sets of pairs: `before.items() & now.items()` are those that stay.
#
# </details>

# %% tags=["exercise"]
def books_of(before, now):
    # BEGIN SOLUTION
    stay = before.items() & now.items()
    return {"num_added": len(now) - len(stay), "num_deleted": len(before) - len(stay), "num_skipped": len(stay)}
    # END SOLUTION
    # STARTER: raise NotImplementedError

# %% tags=["check"]
with check("10.3 Match the library exactly"):
    now = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.suffix != ".pdf"}
    before = {path.name: text for path, text in zip(paths, texts)}
    wanted = {name: second[name] for name in ("num_added", "num_deleted", "num_skipped")}
    assert books_of(before, now) == wanted, "a changed document is one added and one deleted"

# %% [markdown]
# ## Key points
#
# - Profile first. Cutting is quick; what embeds costs.
# - Batch, and know everything by its content: then nothing is done twice.
# - A stage that is a pure function can be done again wherever it failed. Write beside, then move.
# - One document's fault is a row in a table, not the end of a run.
# - A new model or a new chunker is a new corpus. Choose on a sample.
#
# ## Quiz
#
# 1. Your pipeline spends 2 % of its time on cutting. A chunker ten times as fast comes out. What do you win?
#
# <details><summary>Answer</summary>
#
# 1.8 % at most. Take it if it cuts better.
#
# </details>
#
# 2. Why is the model loaded in an actor's `__init__`, and not in the function that embeds a batch?
#
# <details><summary>Answer</summary>
#
# It would be loaded again for each batch. An actor lives on, and loads once.
#
# </details>
#
# 3. A worker wrote its file and died before it could say so. Why is nothing there twice?
#
# <details><summary>Answer</summary>
#
# Another worker does the block again, and its file has the same name, made from the same files and settings: it takes the
# first one's place.
#
# </details>
#
# 4. A document was deleted at its source. What happens if a second run only adds?
#
# <details><summary>Answer</summary>
#
# Its chunks stay in the index and are found for ever. A run must know what is gone, too.
#
# </details>
#
# 5. Half of the vectors are from a new model. Searches still return hits. What is wrong?
#
# <details><summary>Answer</summary>
#
# Cosines between two models mean nothing: hits from the wrong half are noise. Where both give as many numbers, nothing crashes,
# which is the danger.
#
# </details>
#
# ## Take it with you
#
# What is new, changed and gone, by content: the core of every incremental run.

# %% [markdown] tags=["speaker"]
# **Key points · 1 min** What would they build first on Monday? If anybody says a cluster, have the first point read
# again, by that person. Then the last one, by you.

# %% [markdown] tags=["speaker"]
# **Quiz · 1 min** Question 5 in pairs, as it ties the last lesson to the first: half of the vectors are new, hits come
# back, and something is wrong. Then thank the class: this was the course.

# %% [markdown] tags=["speaker"]
# **Take it with you · 1 min** Names and checksums, no library. Which line notices a deleted file? Last, `python -m
# chunklab progress` on the projector: what is still open can be done at home.

# %% tags=["scaffold"]
# Runs on its own. before: name to checksum, of the last run; files: name to bytes.
import hashlib


def work_to_do(before, files):
    now = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    changed = [name for name, sha in now.items() if before.get(name) != sha]
    return changed, [name for name in before if name not in now], now


*todo, books = work_to_do({}, {"a.txt": b"one", "b.txt": b"two"})
todo, work_to_do(books, {"a.txt": b"one", "b.txt": b"too"})[:2]
