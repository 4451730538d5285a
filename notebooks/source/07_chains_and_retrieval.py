# %% [markdown]
# # Chains and retrieval
#
# **Minutes:** 75 · **Before:** lesson 06
#
# A chunk has two jobs: to be found, and to explain. The first wants it small, the second wants it large. Must one size
# do both?
#
# When you have done this lesson you will be able to
#
# - split a text in levels, and climb from what was found to what explains it;
# - hand on neighbours, parents or documents within a budget of tokens;
# - search by words and by meaning at once;
# - let a model answer from what was found, and know what a score can tell you before you do;
# - compare all of these at the same cost.

# %% [markdown] tags=["speaker"]
# **Opening · 2 min** Two questions, and let the room contradict itself. Should a chunk be small? Yes, to be found.
# Should it be large? Yes, to be understood. Write both down. Nobody has said that what is searched and what is handed
# on must be the same.

# %% tags=["scaffold"]
from collections import Counter
from dataclasses import replace

import bm25s
import numpy as np
from IPython.display import display

from chunklab import ChunkIndex, FixedSizeChunker, HeadingChunker, Hybrid, LLMChunker, ParagraphChunker, Parent
from chunklab import RecursiveChunker, Scoreboard, SemanticChunker, SentenceChunker, SplitterChain, TopN, WholeDocument
from chunklab import Window, chat, compare_chunks, embeddings, load_corpus, load_questions, plot_heatmap, span_scores
from chunklab import tokens, written_by
from chunklab.counting import counted
from chunklab.exercises import check
from chunklab.hybrid import standardised, stemmed
from chunklab.strategies import last_level

corpus, questions, static, llm = load_corpus(), load_questions(), embeddings("static"), chat()

# %% [markdown]
# ## The flaw: right, whole, and alone
#
# Lesson 06 ended with this chunk. It answers the question, and leaves out what must come first: the warning stands
# under the same heading, in the chunk before. At which rank, in the manual alone, does that come?

# %% [markdown] tags=["speaker"]
# **The flaw · 3 min** The penstock again. At which rank does the warning come, in this one document? Most say second,
# as it stands next door. Tenth. Neighbours on the page are strangers among vectors: worth a drawing, two points far
# apart and one line between them on the paper.

# %%
manual, turn_down = corpus["tidewright_manual.md"], "How far do I turn the penstock down, and what comes next?"
topics = ChunkIndex(HeadingChunker().chunk(manual, "manual"), static)
hits = topics.search(turn_down, k=len(topics))
rank, warning = next((hit.rank, hit.chunk.text) for hit in hits if "may a bar be drawn" in hit.chunk.text)
print(f"rank 1: {hits[0].chunk.text[:158]} …\n\nrank {rank}: … {warning[-149:]}")

# %% [markdown]
# ## Predict
#
# 1. One sentence answers "Why is there no second chain lying in the works store?". Among sentences it comes first. At
#    which rank comes the chunk of 1,200 characters that holds it?
# 2. You find five sentences a question, and hand on the five passages of 1,200 characters around them instead. How many
#    points of recall do you win? And if both may read 1,000 tokens?
# 3. You search by words as well as by meaning. How many points, at the same cost?
# 4. You ask for the password of the wireless network, which stands nowhere. What does a model answer?
#
# ## Build it
#
# ### Small can find
#
# A vector is a mean: the more a chunk says, the less of it is about your question. Lesson 03's splitter in five sizes,
# and one question: at which rank comes the first chunk that holds the answer?

# %% [markdown] tags=["speaker"]
# **Predict · 4 min** First: they expect the top five. Second: two numbers, and nearly everybody gives both the same
# sign; let it stand. Third: after lesson 04 they say nothing or little, and will be surprised. Fourth: ask what an
# honest model would answer, then what this one will.

# %% [markdown] tags=["speaker"]
# **Build it · 4 min** One question in five sizes. Have the ranks read aloud as they come: 1, 1, 118, 163, 90. Be honest
# before somebody asks: it was chosen for the effect, and the measurement will not repeat it. A vector is a mean, and
# the sentence drowns in its chunk.

# %%
why, because = "Why is there no second chain lying in the works store?", "because a chain that lies still rusts"
for size in (150, 300, 600, 1200, 2400):
    index = ChunkIndex([c for name, text in corpus.items() for c in SentenceChunker(size).chunk(text, name)], static)
    hit = next(hit for hit in index.search(why, k=len(index)) if because in hit.chunk.text)
    print(f"{size:5} characters: rank {hit.rank:3} of {len(index):4}, cosine {hit.score:.2f}")

# %% [markdown]
# Rank 163 of 187 (your first guess). But this is one question, chosen for the effect.
#
# ### A chain: each chunker splits what the one before gave
#
# The places must stay those of the *document*, and each chunk must know its parent. So a child's place is its parent's
# plus its own, and its name is its parent's plus its number.
#
# Below, section 8.2 (with these sizes, one chunk) and the first of its children and grandchildren.

# %% [markdown] tags=["speaker"]
# **A chain · 8 min** Draw section, paragraph, sentence as boxes in boxes. The paragraph begins at 22,322 of the manual,
# a sentence at some place in it: where does it begin in the manual? Add. That is nearly all that `children` does. First
# versions go wrong in the ids: number the boxes as they are printed below, and read one id backwards, from child to
# top.

# %% tags=["same-as:chunklab.chunkers.chain.chunk_levels", "same-as:chunklab.chunkers.chain.children"]
def chunk_levels(text, splitters, doc_id="doc"):
    levels = [[replace(c, id=f"{doc_id}_{place}") for place, c in enumerate(splitters[0].chunk(text, doc_id))]]
    for splitter in splitters[1:]:
        levels.append([child for parent in levels[-1] for child in children(text, parent, splitter)])
    return levels


def children(text, parent, splitter):
    found = []
    for place, child in enumerate(splitter.chunk(text[parent.start : parent.end], parent.id)):
        metadata = dict(child.metadata)
        if "spans" in metadata:  # of a chunk that was made of several places
            metadata["spans"] = [(parent.start + start, parent.start + end) for start, end in metadata["spans"]]
        start, end = parent.start + child.start, parent.start + child.end
        family = {"document": parent.document, "id": f"{parent.id}_{place}", "parent_id": parent.id}
        found.append(replace(child, start=start, end=end, metadata=metadata, **family))
    return found


# %%
three = [HeadingChunker(150, 300, 400), ParagraphChunker(300), SentenceChunker(150)]
levels = chunk_levels(manual, three, "manual")
section = next(chunk for chunk in levels[0] if "### 8.2" in chunk.text)
for chunk in [section, *(c for level in levels[1:] for c in level if c.id.startswith(f"{section.id}_"))][:9]:
    print(f"{chunk.id:14} {chunk.start}–{chunk.end} {chunk.text[:70]!r}")

# %%
# Two more chains: as many tokens as MiniLM reads, then groups of one meaning; sections, then a language model.
by_meaning, by_model = [FixedSizeChunker(254, tokenizer="minilm"), SemanticChunker(static)], [three[0], LLMChunker(llm)]
for name, text, chain in (("survey", corpus["throat_survey.txt"], by_meaning), ("8.2", section.text, by_model)):
    print(f"{name}:", " → ".join(str(len(level)) for level in chunk_levels(text, chain, name)), "chunks")

# %% [markdown]
# ### Big explains: climb
#
# Search the sentences, hand on what they are a part of, each once. This is *parent-document retrieval*, or
# *small to big*. Other splitters begin anew in each document, at `0_1` say, so the document is part of the key. (If
# the parent is not kept, the loop shortens the id to the next above.)

# %% [markdown] tags=["speaker"]
# **Big explains · 7 min** Type `parent_of` as far as its key, then ask what two files that both have a chunk `0_1` do
# to an index that knows ids alone: one stands in for the other. For `climb` ask how to keep the order and drop doubles;
# a dictionary does. Then read the three hits. None is the answer, and the parent of the first holds it.

# %% tags=["same-as:chunklab.strategies.parent_of"]
def parent_of(chunk, known):
    name, document = chunk.parent_id, chunk.document
    while name:
        if (document, name) in known:
            return known[document, name]
        name = name.rpartition("_")[0] if name.startswith(f"{document}_") else ""
    return None


# %%
def climb(hits, known):
    parents = [parent_of(hit.chunk, known) or hit.chunk for hit in hits]
    return list({(parent.document, parent.id): parent for parent in parents}.values())


# All documents, as not all have headings, in two levels. `last_level`: the smallest, which are searched.
def two_levels(small, large=RecursiveChunker(1200)):
    return [c for name, text in corpus.items() for c in SplitterChain([large, small]).chunk(text, name)]


chunks, drawn = two_levels(SentenceChunker(150)), "When may a bar of the comb be drawn?"
known, index = {(c.document, c.id): c for c in chunks}, ChunkIndex(last_level(chunks), static)
hits = index.search(drawn, k=3)
print(*(f"{hit.score:.2f} {hit.chunk.text!r}" for hit in hits), "", climb(hits, known)[0].text[:612], sep="\n")

# %% [markdown]
# The best three are not the answer. It stands *near* the first, and the parent holds both.
#
# ### Or take the neighbours, and pay in tokens
#
# A *window* is the hit with `n` siblings on either side: of the same parent, and fewer at an edge.
#
# A parent is more text, so it holds more. What a model reads costs tokens: they are the fair currency.
# `spend` takes the best first, and skips what no longer fits.

# %% [markdown] tags=["speaker"]
# **Or take the neighbours · 6 min** Type `window`, then ask what is unfair about comparing it with one sentence.
# Somebody says length: now `spend` is the referee. A parent's 230 tokens buy 9 sentences, the answer among them. Let
# that spoil the triumph of climbing; the measurement below is this doubt, on all questions.

# %%
def window(hit, chunks, n=1):
    found = hit.chunk
    siblings = [c for c in chunks if (c.document, c.parent_id) == (found.document, found.parent_id)]
    near = [c for c in siblings if abs(c.index - found.index) <= n]
    return found.document, near[0].start, near[-1].end


def spend(hits, budget, length):
    read = []
    for hit in hits:
        if (size := length(hit.chunk.text)) <= budget:
            budget -= size
            read.append(hit)
    return read


# %%
count, (document, start, end) = tokens("cl100k"), window(hits[0], index.chunks)
print(corpus[document][start:end], "\n")
cost = count(climb(hits, known)[0].text)
bought = [hit.chunk.text for hit in spend(index.search(drawn, k=60), cost, count)]
print(f"For the parent's {cost} tokens: {len(bought)} sentences, one of them {bought[7]!r}")

# %% [markdown]
# The window misses the answer. And the parent's tokens buy nine sentences, the answer among them: do we win by
# climbing, or by reading more?
#
# ### Words, too
#
# A name or a number has little meaning, and is the surest sign. **BM25** counts words: how often in this chunk, against
# its length, and how rare in all. Its sums and cosines are different things. To add them, take each in standard
# deviations from its mean. (Words lose their endings first: *rings*, *ringing*, *ring*.) The question below: what did
# Ines Calloway pay for her tin box, on her first crossing to Orrin in 1923? Sixpence.

# %% [markdown] tags=["speaker"]
# **Words, too · 7 min** Build BM25 from three wishes of the class: rare words count more, each repetition less, long
# chunks are held back. Point to each in the code. Then ranks 15, 1 and 1. Ask why sums and cosines are not simply
# added; units come up. Standard deviations are one answer, ranks another (exercise 7.3).

# %%
# k1: how much a word adds that stands there again; b: how much a long chunk is held back. (Anserini's defaults.)
def bm25(query, counts, k1=0.9, b=0.4):
    lengths, scores = np.array([c.total() for c in counts]), np.zeros(len(counts))
    for word in stemmed([query])[0]:
        times = np.array([c[word] for c in counts])
        holding = np.count_nonzero(times)
        rare = np.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
        scores += rare * times / (times + k1 * (1 - b + b * lengths / lengths.mean()))
    return scores


# %%
box, counts = questions[0].question, [Counter(words) for words in stemmed(c.text for c in index.chunks)]
words, meaning = bm25(box, counts), index.scores([box])[0]
for name, scores in {"meaning": meaning, "words": words, "both": standardised(words) + standardised(meaning)}.items():
    found = ["her sixpence" in index.chunks[place].text for place in np.argsort(-scores)]
    print(f"{name}: rank {found.index(True) + 1}")

# %% [markdown]
# Words find it at once. (This question was chosen, too.)
#
# ## Check it against LangChain and bm25s
#
# LangChain's `ParentDocumentRetriever` with our two chunkers; bm25s; and the package's strategies, which also merge
# what overlaps.

# %% [markdown] tags=["speaker"]
# **Check it against LangChain and bm25s · 4 min** The given cell ties LangChain's retriever to our chunkers: run it,
# and do not read it out. Four lines of True follow; ask what each of them compares, as a list of True convinces nobody
# who cannot say that.

# %% tags=["scaffold"]
from langchain_classic.retrievers import EnsembleRetriever, ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

theirs = ParentDocumentRetriever(
    vectorstore=InMemoryVectorStore(static),
    docstore=InMemoryStore(),
    child_splitter=SentenceChunker(150),
    parent_splitter=RecursiveChunker(1200),
)
theirs.add_documents([Document(text, metadata={"source": name}) for name, text in corpus.items()])

# %%
# Are they the same? Parents; words; one window, and 1,000 tokens of sentences.
asked, some = ([question.question for question in questions[::step]] for step in (1, 10))
ours = [[parent.text for parent in climb(hits, known)] for hits in index.search_many(some, k=4)]
same = [[document.page_content for document in theirs.invoke(text)] for text in some] == ours
print(f"{len(ours)} questions, {sum(map(len, ours))} parents: {same}")
library = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend="numpy")
library.index([list(count.elements()) for count in counts], show_progress=False)
same = all(np.allclose(bm25(text, counts), library.get_scores(stemmed([text])[0]), atol=1e-4) for text in some)
print("words:", same)
windows, budget = Window(index, k=1, documents=corpus), TopN(index, k=60, max_tokens=1000)
places = lambda hits: [(hit.chunk.document, hit.chunk.start, hit.chunk.end) for hit in hits]
near = {text: index.search(text, k=60) for text in some}
print("windows:", all(places(windows.search(text)) == [window(near[text][0], index.chunks)] for text in near))
print("budget:", all(places(budget.search(text)) == places(spend(near[text], 1000, count)) for text in near))

# %% [markdown]
# ## See it
#
# The page of the bars. Left the parents, right the sentences; the hit is outlined. Where is the falling tide?

# %% [markdown] tags=["speaker"]
# **See it · 2 min** Left the parents, right the sentences, the hit outlined. They find the falling tide by eye and say
# how far from the hit it lies. Half a minute will do if you are late.

# %%
(hit,) = index.search(drawn, k=1)
cut = {"parents": RecursiveChunker(1200).chunk(manual), "children": SentenceChunker(150).chunk(manual)}
compare_chunks(manual, cut, around=hit.chunk, highlight=[hit.chunk], limit=1300)

# %% [markdown]
# ## Let a model answer
#
# The last step of the pipeline, in LangChain's own words: a dictionary of what goes into the prompt, the prompt, the
# model, the parser, joined by `|`. Each strategy is a LangChain retriever, so it goes in as it is.

# %% [markdown] tags=["speaker"]
# **Let a model answer · 5 min** The chain reads from left to right: have somebody say it as a sentence. The same
# question with one sentence, then with its parent: only the second answer is right. Then the password, which stands
# nowhere, and is answered. Ask which words of the prompt forbid that.

# %%
rule = "Answer the question in one or two sentences, from the passages alone."
PROMPT = ChatPromptTemplate([("system", rule), ("human", "{passages}\n\nQuestion: {question}")])
read = lambda found: "\n\n".join(document.page_content for document in found)
said = lambda reply: f"{reply.text} ({written_by(reply)})"  # a parser; StrOutputParser() gives the text alone


def answers(strategy):
    return {"passages": strategy | read, "question": RunnablePassthrough()} | PROMPT | llm | said


# One sentence, or what is around it.
sentence, section = TopN(index, k=1), Parent(index, parents=chunks, k=1)
password = "What is the password of the wireless network?"
for text in (drawn, password):
    print(text, *(answers(strategy).invoke(text) for strategy in (sentence, section)), sep="\n   ")

# %% [markdown]
# One sentence misleads, its parent answers. What stands nowhere is answered too (your fourth guess), though the model is told
# "from the passages alone".
#
# ### When to say nothing
#
# A *relevancy cut-off* passes over what scores too little. For two models: the score that 95 % of the right first hits
# reach (they hold some of the answer). How many wrong first hits reach it, and how many for ten questions that no
# document answers?

# %% [markdown] tags=["speaker"]
# **When to say nothing · 4 min** A cut-off looks like the cure. Let them choose one, then see what passes: 131 of 159
# wrong hits. Ask what 0.28 means in the other model. Nothing: that is the sentence to write down, for everybody who has
# a threshold in a settings file.

# %%
nowhere = [password, "How tall is the Eiffel Tower?", "Which bus goes from the airport to the harbour?"]
nowhere += ["Who won the election for mayor in St Maren?", "How many calories does a seal eat a day?"]
nowhere += ["What is the recipe for Gudrun's fish soup?", "Can I bring my horse on the ferry?"]
nowhere += ["When does the cinema in Chandler Street open?", "How do I reset my pump's warranty online?"]
nowhere += ["What is the interest rate of the savings bank?"]
pool = last_level(two_levels(RecursiveChunker(600)))
for name in ("static", "minilm"):
    first = [hits[0] for hits in ChunkIndex(pool, embeddings(name)).search_many(asked + nowhere, k=1)]
    right = [bool(span_scores([hit], question.spans).recall) for hit, question in zip(first, questions)]
    scores = np.array([hit.score for hit in first])
    bar = np.percentile(scores[: len(asked)][right], 5)
    wrong, none = scores[: len(asked)][~np.array(right)] >= bar, scores[len(asked) :] >= bar
    print(f"{name}, {bar:.2f}: pass {wrong.sum()} of {len(wrong)} wrong, {none.sum()} of {len(none)} without an answer")

# %% [markdown]
# Most wrong hits pass, and some questions without an answer (too few to compare models). A higher bar keeps
# out more, right ones too. And it is *one model's*: 0.28 in one keeps the share of right hits that 0.36 keeps in the
# other. A "60 of 100" in somebody's settings says nothing about yours.
#
# ## Measure it
#
# First five hits a question, as is usual. Then 1,000 tokens: sentences of at most 150 characters and chunks of 600, in
# parents of 1,200; chunks of 1,200, in parents of 2,400. "words" is BM25 alone, "both" adds meaning.

# %% [markdown] tags=["speaker"]
# **Measure it · 10 min** Five hits first: parents 46.3, sentences 24.6. Let them enjoy it, then the tokens, nine times
# as many. Equal tokens: +0.3. Give the heat map a silent minute. What nobody bet on stands in its last column, words
# and meaning, best at each size. End with what recall does not see: whoever leaves out the warning loses nothing here.

# %%
def strategies(chunks, **options):
    index = ChunkIndex(last_level(chunks), static)
    found = {"chunks": TopN(index, **options), "window": Window(index, documents=corpus, **options)}
    found |= {"parent": Parent(index, parents=chunks, **options), "words": Hybrid(index, word_weight=1, **options)}
    return found | {"both": Hybrid(index, **options)}


five = Scoreboard(static)
for name, strategy in strategies(chunks, k=5).items():
    five.add(name, index.chunks, index=lambda *_: strategy)
five.add("document", index.chunks, index=lambda *_: WholeDocument(index, documents=corpus, k=5))
five.table()[["recall %", "precision %", "tokens"]]

# %%
board, sizes = Scoreboard(static, k=40), {"150": chunks, "600": two_levels(RecursiveChunker(600))}
sizes["1200"] = two_levels(RecursiveChunker(1200), RecursiveChunker(2400))
for size, levels_of in sizes.items():
    for name, strategy in strategies(levels_of, k=40, max_tokens=1000).items():
        board.add(f"{size} {name}", last_level(levels_of), index=lambda *_: strategy)
frame = board.frame()
large = np.mean([count(c.text) for c in sizes["1200"] if not c.parent_id])
print(f"{frame['tokens'].min():.0f} to {frame['tokens'].max():.0f} tokens a question; a parent of 2,400: {large:.0f}")
frame["characters searched"], frame["method"] = zip(*(name.split(" ", 1) for name in frame.index))
display(plot_heatmap(frame, "method", "characters searched", "recall"))
pairs = [(f"{size} {name}", f"{size} chunks") for name in ("window", "parent", "both") for size in sizes]
pairs += [(f"{size} both", f"{size} words") for size in sizes]
pairs += [("600 chunks", "150 chunks"), ("600 chunks", "1200 chunks"), ("150 chunks", "1200 chunks")]
board.differences([*pairs, ("150 parent", "1200 chunks")])

# %% [markdown]
# *Five hits.* Parents nearly double the recall of sentences, 46.3 against 24.6, and read nine times as much. Whole
# documents have 96.5, and read 41,221 tokens.
#
# *Equal tokens* (your second guess). For sentences the parents' gain is gone: +0.3, from −6.2 to +6.9. Of the windows'
# gain 6 points stay. Larger chunks lose by both. (1,000 tokens seldom hold the two best parents of 2,400.)
#
# *Do small chunks find more?* In the first column 600 characters are best, and between 150 and 1,200 no difference
# shows: our question was chosen well. And parents of sentences show no gain over chunks of that size, searched
# themselves: +0.2, and the interval is wide. Climbing may pay where a model cannot read the large chunk: MiniLM stops
# after 256 tokens.
#
# *Words and meaning* find more than meaning alone at each size, by 8.6 to 19.1 points (your third guess), and more than
# words alone; no interval holds 0. Chunks of 600 are highest, those of 1,200 close. On this corpus, with this small
# model, look at *how* you search first. A better model may need the words less.
#
# Recall sees the gold answer only. A method that leaves out our flaw's warning loses nothing here: windows and parents
# may be worth their tokens all the same.
#
# ## Break it
#
# What no number above sees: what a model makes of a good passage, and a manual that changes (31 turns become 29).

# %% [markdown] tags=["speaker"]
# **Break it · 3 min** Everything was handed on, and the model left out what comes next: who finds where it stood? Then
# 31 turns become 29; ask how many chunks must be embedded again. Last question: which of our numbers would have told us
# of the bad answer? None.

# %%
around = Window(topics, k=1, documents={"manual": manual})
print(around.invoke(turn_down)[0].page_content[:1124], answers(around).invoke(turn_down), sep="\n\n")
with counted() as calls:
    topics.update("manual", HeadingChunker().chunk(manual.replace("31 turns", "29 turns"), "manual"))
print(f"\n{calls.embedded} of {len(topics)} chunks embedded: {topics.search(turn_down, k=1)[0].chunk.text[94:150]!r}")

# %% [markdown]
# All was handed on, the warning too, and the model left out what comes next. No recall tells you. And until the index
# was updated, 31 would have come first as before. So who judges the *answer*? Lesson 08.
#
# ## Exercises
#
# **7.1 Recall.** In `levels` above, the sentence `manual_20_2_3` was found. Which chunk is its parent, which stands at
# the top, and which chunks are in its window with `n=1`? Write their ids.
#
# <details><summary>Hint</summary>
#
# An id without its last number is the parent's. `[c.id for c in levels[2]]` shows which siblings there are.
#
# </details>

# %% [markdown] tags=["speaker"]
# **Exercises · 3 min** 7.1 aloud, in a minute. 7.2 looks easy: first versions fail on the third assert, where one span
# joins two; let them find it by the check. 7.3 at home, reciprocal rank fusion in a few lines, equal to LangChain's.

# %% tags=["exercise"]
# BEGIN SOLUTION
above, top = "manual_20_2", "manual_20"
beside = ["manual_20_2_2", "manual_20_2_3", "manual_20_2_4"]
# END SOLUTION
# STARTER: above, top = ..., ...
# STARTER: beside = [...]

# %% tags=["check"]
with check("7.1 Recall"):
    assert (above, top) == ("manual_20_2", "manual_20"), "take one number off for the parent, and on to the top"
    assert beside == [f"{above}_{number}" for number in (2, 3, 4)], "one sibling on either side, and the hit itself"

# %% [markdown]
# **7.2 Apply.** Two windows may overlap, and a model should not read a text twice. Write `once`: of spans (document,
# start, end), best first, those that overlap or touch become one, in the place of the better.
#
# <details><summary>Hint</summary>
#
# Go through the spans and keep a list. For each, find all kept ones of its document that it overlaps or touches: the
# new span goes from the first start to the last end of all of them, into the place of the first; the others go.
#
# </details>

# %% tags=["exercise"]
def once(spans):
    # BEGIN SOLUTION
    kept = []
    for document, start, end in spans:
        near = [span for span in kept if span[0] == document and span[1] <= end and start <= span[2]]
        place = kept.index(near[0]) if near else len(kept)
        kept = [span for span in kept if span not in near]
        both = [(document, start, end), *near]
        kept.insert(place, (document, min(span[1] for span in both), max(span[2] for span in both)))
    return kept
    # END SOLUTION
    # STARTER: raise NotImplementedError

# %% tags=["check"]
with check("7.2 Apply"):
    assert once([("a", 5, 9), ("b", 0, 4), ("a", 8, 12)]) == [("a", 5, 12), ("b", 0, 4)]
    assert once([("a", 0, 2), ("b", 1, 3), ("a", 2, 4)]) == [("a", 0, 4), ("b", 1, 3)], "touching counts"
    assert once([("a", 0, 2), ("a", 6, 8), ("b", 0, 1), ("a", 1, 7)]) == [("a", 0, 8), ("b", 0, 1)], "one may join two"
    assert once([]) == []

# %% [markdown]
# **7.3 Match the library exactly.** LangChain's `EnsembleRetriever` joins two rankings by *reciprocal rank fusion*:
# each list gives what it holds 0.5 / (60 + rank), ranks from 1; the sum decides, and of equals the one that was seen
# first. Write `fused`, for two lists of texts.
#
# <details><summary>Hint</summary>
#
# A dictionary keeps the order in which texts come in; `sorted(…, key=…, reverse=True)` keeps it among equals.
#
# </details>

# %% tags=["exercise"]
def fused(*rankings):
    # BEGIN SOLUTION
    scores = {}
    for ranking in rankings:
        for rank, text in enumerate(ranking, start=1):
            scores[text] = scores.get(text, 0) + 0.5 / (60 + rank)
    return sorted(scores, key=scores.get, reverse=True)
    # END SOLUTION
    # STARTER: raise NotImplementedError

# %% tags=["check"]
with check("7.3 Match the library exactly"):
    two = [TopN(index, k=5), Hybrid(index, k=5, word_weight=1)]
    both = EnsembleRetriever(retrievers=two, weights=[0.5, 0.5])
    for q in asked[:20]:
        assert fused(*([d.page_content for d in r.invoke(q)] for r in two)) == [d.page_content for d in both.invoke(q)]

# %% [markdown]
# ## Key points
#
# - Small chunks can be found alone, large ones explain. A chain keeps both, with places in the document.
# - A key is document *and* id. Each parent once, no text twice.
# - Compare at equal tokens, and parents with large chunks that are searched themselves.
# - Words and meaning found more than either. Add them in standard deviations, or by rank.
# - A score is one model's. A cut-off is measured, on questions with and without an answer.
# - All may be retrieved, and the answer still be wrong.
#
# ## Quiz
#
# 1. Your retriever returns parents, and recall doubles at k = 5. What do you ask?
#
# <details><summary>Answer</summary>
#
# How many tokens each way reads. At equal tokens the gain may be gone; then it was text that was bought, and more small
# chunks would have bought it too.
#
# </details>
#
# 2. Two documents have a chunk `0_1`. What goes wrong where parents are made unique by their id alone?
#
# <details><summary>Answer</summary>
#
# The second document's parent is taken for the first's, and a hit is lost. The key is document and id.
#
# </details>
#
# 3. Why are BM25 and cosine not simply added?
#
# <details><summary>Answer</summary>
#
# They have other units: a BM25 sum may be 10 where a cosine is at most 1, so the words alone would decide. In standard
# deviations, or as ranks, they can be added.
#
# </details>
#
# 4. You change the embedding model. What becomes of your cut-off of 0.35?
#
# <details><summary>Answer</summary>
#
# Nothing can be said: another model's cosines lie elsewhere. Measure it anew, on questions whose answers you know and
# on some that have none.
#
# </details>
#
# 5. One of a hundred documents changed. What must be embedded, what must be counted anew?
#
# <details><summary>Answer</summary>
#
# Only chunks whose text is new are embedded. BM25 counts words over all chunks (how rare, how long), so its figures
# change for all; that takes no model.
#
# </details>
#
# ## Take it with you
#
# Small to big, with any splitter and any model: `embed` gives a list of vectors for a list of texts. You need
# `pip install numpy`.

# %% [markdown] tags=["speaker"]
# **Key points · 1 min** Ask which point contradicts a tutorial that they know. It is usually the third: parents win
# there, as nobody counts tokens. Ask how they would check it tomorrow.

# %% [markdown] tags=["speaker"]
# **Quiz · 1 min** Question 1 is the lesson: everybody writes one sentence. If a minute is left, question 5: what must
# be embedded anew, and what is only counted?

# %% [markdown] tags=["speaker"]
# **Take it with you · 1 min** Any splitter, any model. Ask what the toy `count` makes of a text, and why "Does it
# purr?" brings the other sentence about cats along: it came with its parent.

# %% tags=["scaffold"]
# Runs on its own.
import re

import numpy as np


def small_to_big(question, parents, split, embed, k=4):
    pieces = [(place, piece) for place, parent in enumerate(parents) for piece in split(parent)]
    vectors = np.asarray(embed([question, *(piece for _, piece in pieces)]), dtype=float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12
    best = np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")
    return [parents[place] for place in list(dict.fromkeys(pieces[i][0] for i in best))[:k]]


sentences = lambda text: re.split(r"(?<=[.?!])\s+", text)
count = lambda texts: [[text.lower().count(word) for word in ("purr", "nap", "tax", "rent")] for text in texts]
small_to_big("Does it purr?", ["The tax rose. So did rents.", "Cats nap. They purr."], sentences, count, k=1)
