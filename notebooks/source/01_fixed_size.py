# %% [markdown]
# # Fixed size
#
# **Minutes:** 50 · **Before:** lesson 00
#
# How would you cut a text of which you know nothing? Count to a thousand, cut, and count again. Windows of one size are
# the fastest method, and the baseline for every lesson to come. They are simple enough to get wholly right.
#
# When you have done this lesson you will be able to
#
# - tell characters, graphemes and tokens apart, and say which of them a size counts;
# - build windows with overlap, free of three classic faults, and say beforehand how many there will be;
# - measure what overlap buys and what it costs;
# - find out whether your embedding model reads your chunks to the end.

# %% [markdown] tags=["speaker"]
# **Opening · 2 min** Ask how a program that knows nothing of a text would cut it. Within seconds somebody says "every
# thousand characters": good, that is the lesson. Promise that a loop of two lines has three classic faults, and that
# the class, not you, will find them.

# %% tags=["scaffold"]
from math import ceil

import pandas as pd
import regex
from langchain_text_splitters import CharacterTextSplitter, TokenTextSplitter

from chunklab import ChunkIndex, FixedSizeChunker, Scoreboard, SlidingWindowChunker, embeddings, tokens
from chunklab import compare_chunks, load_corpus, load_questions, plot_sweep, show_chunks
from chunklab.chunk import BOM, hard_cut, is_blank, overlap_start, reach
from chunklab.exercises import check
from chunklab.models.embeddings import truncated

documents, questions = load_corpus(), load_questions()
names = ("the_bell_that_waited.txt", "tidewright_manual.md", "leaflet.txt")
novella, manual, leaflet = (documents[name] for name in names)
static, minilm = embeddings("static"), embeddings("minilm")

# %% [markdown]
# ## The flaw: half an answer can be worse than none
#
# Lesson 00 ended with an answer that a cut had divided. How bad can that be? Somebody in the clock tower asks. Take one
# chunk, `k` = 1, and read how it ends.

# %% [markdown] tags=["speaker"]
# **The flaw · 3 min** Read the question as somebody in the clock tower would ask it, then the end of the chunk, and
# stop. Do you leave the brake in? Let them decide, then show how the next chunk begins. The search was right, and the
# cut made its answer dangerous. A larger `k` may bring the other half, apart from it.

# %%
# The question, the end of the best chunk, and how the next chunk begins.
chunks = [chunk for name, text in documents.items() for chunk in FixedSizeChunker(1000).chunk(text, name)]
brake = next(question for question in questions if question.id == "manual-31")
best = ChunkIndex(chunks, static).search(brake.question, k=1)[0].chunk
print(brake.question, best.text[-108:], chunks[chunks.index(best) + 1].text[:31], sep="\n\n… ")

# %% [markdown]
# ## Predict
#
# The search found the right place. But the window ends inside the rule, and the half that came back says the opposite of the
# rule. The usual cure is overlap: neighbours share some text. Write down three guesses.
#
# 1. You cut 10,000 characters into windows of 1,000, and neighbours share 200. How many windows?
# 2. Windows of 1,000 cut some of our gold answers in two. How many of these does that overlap make whole: a few, half, all?
# 3. By how many points does recall rise with it?

# %% [markdown] tags=["speaker"]
# **Predict · 3 min** Three numbers on paper. For the first expect twelve, or twelve and a half: they divide by 800 and
# do not round up. Leave it wrong until the formula. For the third nearly everybody expects several points; write the
# highest guess on the board, and come back to it at the scoreboard.

# %% [markdown]
# ## Build it
#
# ### What do we count?
#
# Python counts *code points*, the numbered characters of Unicode. What a reader sees as one character is a *grapheme*,
# which may be several of them. A model counts tokens. Here are three texts of one length, and three graphemes of our leaflet.

# %% [markdown] tags=["speaker"]
# **Build it · 4 min** Draw the family as five boxes, three people and two joiners, and ask where Python may cut:
# between any two. Then the table. The emoji amuse; Chinese is what matters: ask what a limit of 1,000 characters means
# to a model that reads 256 tokens. That question comes back at the end.

# %%
# One size, four ways to count.
chinese = 4 * leaflet.split("\n\n\n")[2]
texts = {"English": novella[:1000], "Python": documents["tideclock.py"][:1000], "Chinese": chinese[:1000]}
for opening in ("👨", "🇻", "o\u0323"):
    sign = next(g for g in regex.findall(r"\X", leaflet) if g.startswith(opening))
    texts[sign] = sign
counts = {"code points": len, "graphemes": lambda text: len(regex.findall(r"\X", text))}
counts |= {"tokens, cl100k": tokens("cl100k"), "tokens, MiniLM": tokens("minilm")}
pd.DataFrame({name: pd.Series(texts).map(count) for name, count in counts.items()})

# %% [markdown]
# In Chinese the same size is over five times the tokens for cl100k; MiniLM's 968 are mostly `[UNK]`, unknown. The family is
# three people glued by invisible joiners, the flag two letters, the dot below the o a character of its own. A cut
# inside them leaves rubble.
#
# ### A loop with three faults
#
# The obvious loop steps by the size less the overlap. We try it on the leaflet's first words and on a family. Find the
# faults before you read on.

# %% [markdown] tags=["speaker"]
# **A loop with three faults · 7 min** Two minutes with the loop before it runs: who finds an input that hurts it? Most
# find the family, few the last window inside the one before, hardly anybody an overlap above the size. Write
# `fixed_spans` from its condition: accept no other line until somebody says "when a window has reached the end". The
# helpers are given; the rescue is there if minutes run out.

# %%
# Start a window every size - overlap characters.
def windows(text, size, overlap=0):
    return [(start, min(start + size, len(text))) for start in range(0, len(text), size - overlap)]


title, family = leaflet[:24], leaflet[leaflet.index("👨") - 4 :][:9]
for text, size, overlap in ((title, 12, 6), (title, 12, 14), (family, 6, 0)):
    print(f"{size}/{overlap}", [text[start:end] for start, end in windows(text, size, overlap)])

# %% [markdown]
# The last window of the first words lies inside the one before: it adds nothing, yet it is embedded, and found. With an
# overlap above the size the step goes backwards, and the whole text is lost without a word. (If the two are equal the step
# is zero: `range` refuses it, a `while` loop runs for ever.) And a man is cut off from his family.
#
# Now with care. `hard_cut` gives `start + size`, moved back to the edge of a grapheme; `overlap_start` gives
# `end - overlap`, moved on to such an edge and always past `start`; `is_blank` knows white space. (`length` is the way
# to count; a BOM is an invisible mark that opens some files.) `FixedSizeChunker` checks the step, before any text.

# %% tags=["same-as:chunklab.chunkers.fixed.fixed_spans"]
# Stop when a window has reached the end of the text.
def fixed_spans(text, size, overlap=0, length=len):
    spans = []
    start, end = int(text.startswith(BOM)), 0
    while end < len(text):
        end = hard_cut(text, start, size, length)
        if not is_blank(text[start:end]):
            spans.append((start, end))
        start = overlap_start(text, start, end, overlap, length)
    return spans


print(fixed_spans(title, 12, 6), [family[start:end] for start, end in fixed_spans(family, 6)])
try:
    FixedSizeChunker(chunk_size=12, chunk_overlap=12)
except ValueError as error:
    print(error)

# %% [markdown]
# No useless window, a whole family, and an error that names both numbers. Look at the loop's condition: it asks where the
# window *ends*.
#
# ### Overlap on both sides
#
# Ragu, an open-source system, widens each window on both sides, from `i·size - overlap` to `(i+1)·size + overlap`; so
# neighbours share twice the overlap, and a text of up to `size + 2·overlap` is one chunk. In Ragu's own code a text that
# fits exactly gets an empty or useless last chunk. The cure is the same: stop when a window *has reached* the end. (`room`
# keeps a window with one very long grapheme within the limit; `reach` goes as far as there is room, never into a grapheme.)

# %% [markdown] tags=["speaker"]
# **Overlap on both sides · 3 min** Do not type this one. Run the rescue, draw three windows on a line, and mark what
# each shares with its neighbours. Ask how long a text may be and still be one chunk. Ragu's empty last chunk, at an
# exact fit, is the same question about the end once more.

# %% tags=["same-as:chunklab.chunkers.fixed.sliding_spans"]
def sliding_spans(text, size, overlap, length=len):
    most = size + 2 * overlap
    if length(text) <= most:
        return fixed_spans(text, most, 0, length)
    spans, previous, start, right = [], 0, int(text.startswith(BOM)), 0
    while right < len(text):
        end = hard_cut(text, start, size, length, most)
        room = max(0, min(overlap, (most - length(text[start:end])) // 2))
        left = overlap_start(text, previous, start, room, length) if start > previous else start
        right = reach(text, end, room, length)
        left, right = (start, end) if length(text[left:right]) > most else (left, right)  # tokens do not add up
        if not is_blank(text[left:right]):
            spans.append((left, right))
        previous, start = start, end
    return spans

# %% [markdown]
# ### Window arithmetic
#
# The first window takes `size` characters, each further one adds `size - overlap`, and stores `overlap` again. So there
# are 1 + ⌈(length − size) / (size − overlap)⌉ windows (⌈ ⌉ rounds up), or, with the 1 inside, *n* as below. Sliding
# (widened) windows advance by `size`, and stop one `overlap` sooner. A loop over all multiples of `size` makes one too
# many of the third text, an exact fit. (Both formulas are for more than one window.)

# %% [markdown] tags=["speaker"]
# **Window arithmetic · 3 min** Derive it on the board: the first window takes a thousand, each further one adds eight
# hundred; how many for the rest, and which way do you round? Then the table, which counts and believes nothing. Return
# to the first guess and let those who had twelve say what happened to the last characters.

# %%
# Count against formula; and the last two widened windows of the third text.
rows = []
for length, size, overlap in ((10_000, 1000, 0), (10_000, 1000, 200), (10_200, 1000, 200), (10_000, 1000, 500)):
    fixed, wide = fixed_spans("x" * length, size, overlap), sliding_spans("x" * length, size, overlap)
    again = sum(end - start for start, end in fixed) - length
    n, how_wide = ceil((length - overlap) / (size - overlap)), ceil((length - overlap) / size)
    counted = len(fixed), n, again, overlap * (n - 1), len(wide), how_wide, len(range(0, length, size))
    rows.append((length, size, overlap, *counted))
names = "length, size, overlap, windows, n = ⌈(length − overlap) / (size − overlap)⌉, stored again, overlap · (n − 1)"
names += ", widened, ⌈(length − overlap) / size⌉, multiples of size"
print(sliding_spans("x" * 10_200, 1000, 200)[-2:])
pd.DataFrame(rows, columns=names.split(", "))

# %% [markdown]
# ## Check it against LangChain
#
# The formulas hold, and the answer to the first guess is 13. Now the whole corpus: windows of characters against
# `CharacterTextSplitter` with an empty separator, windows of tokens against `TokenTextSplitter`. (With a tokenizer,
# `FixedSizeChunker` cuts only where a token begins.) The two should part only where LangChain cuts inside a grapheme.

# %% [markdown] tags=["speaker"]
# **Check it against LangChain · 4 min** Say once why every lesson has this section: a chunker that agrees with nobody
# is an opinion. Go straight to the leaflet, which differs twice. Have somebody explain U+FFFD: that text is not moved,
# it is destroyed. Boxes on a learner's screen are a missing font, and no fault.

# %%
# The same text, the same sizes, chunk for chunk; of a document that differs, the first chunk that does.
def compare(name, ours, theirs):
    pairs = {doc: (ours.split_text(text), theirs.split_text(text)) for doc, text in documents.items()}
    equal = sum(mine == other for mine, other in pairs.values())
    print(f"{name}: {sum(len(mine) for mine, _ in pairs.values()):,} chunks, {equal} of {len(pairs)} documents equal")
    for doc, (mine, other) in pairs.items():
        if mine != other:
            i = next(i for i, (a, b) in enumerate(zip(mine, other)) if a != b)
            print(f"  {doc}, chunk {i}: ours ends {mine[i][-8:]!r}, theirs {other[i][-8:]!r}", end="")
            print(f", their next begins {ascii(other[i + 1][:2])}")


for size, overlap in ((1000, 100), (200, 0)):
    theirs = CharacterTextSplitter(separator="", chunk_size=size, chunk_overlap=overlap, strip_whitespace=False)
    compare(f"characters {size}/{overlap}", FixedSizeChunker(size, overlap), theirs)
theirs = TokenTextSplitter("cl100k_base", chunk_size=256, chunk_overlap=0)
compare("tokens 256/0", FixedSizeChunker(256, tokenizer="cl100k"), theirs)

# %% [markdown]
# ## See it
#
# Every chunk is the same but in the leaflet. There, LangChain's cut by characters leaves the accents of a letter to the next
# chunk. Its cut by tokens goes through the *bytes* of an accent, and what is left is U+FFFD, the replacement character: that
# text is destroyed.
#
# Now the brake rule again, outlined. Underlined: in two chunks (2+3). (Cuts count both ends of a chunk.)

# %% [markdown] tags=["speaker"]
# **See it · 4 min** Underlined is in two chunks: let them find the rule whole. For `held` give the signature and ask
# for the one line that matters; the `any` of all windows is where they stumble. Before the figure have them sketch
# three lines. Few draw windows of 200 so low, at twice the text.

# %%
# The rule about the brake, without overlap and with it.
methods = {"no overlap": FixedSizeChunker(1000), "overlap 200": FixedSizeChunker(1000, 200)}
compare_chunks(manual, methods, around=brake.spans[0], highlight=brake.spans, limit=900)

# %% [markdown]
# How much overlap is enough? We count the gold answers that some window holds whole, and set that against the price,
# the text to store.

# %%
# How many of the gold answers does some window hold whole?
gold = [span for question in questions for span in question.spans]


def held(size, overlap):
    found = {name: fixed_spans(text, size, overlap) for name, text in documents.items()}
    return sum(any(a <= g.start and g.end <= b for a, b in found[g.document]) for g in gold)


# %%
# From no overlap to half the size.
cost, whole = "characters to store for 100 of text (overlap 0, 10, 20, 30, 40, 50 %)", "gold answers whole (%)"
points = [(size, percent) for size in (200, 500, 1000) for percent in (0, 10, 20, 30, 40, 50)]
rows = [(s, round(10_000 / (100 - p)), 100 * held(s, s * p // 100) / len(gold)) for s, p in points]
plot_sweep(pd.DataFrame(rows, columns=["size", cost, whole]), x=cost, metric=whole, by="size")

# %% [markdown]
# ## Measure it
#
# Windows of 1,000 hold everything for a quarter more text, an overlap of 200. Windows of 200 do not, even for twice the
# text: an overlap of *n* is sure to keep whole only answers of up to *n* + 1 characters.
#
# The row of lesson 00, and five more (size/overlap).

# %% [markdown] tags=["speaker"]
# **Measure it · 5 min** Back to the highest guess. −0.5 points, and the interval holds 0: leave a silence. The wrong
# conclusion is that overlap is useless; ask which column saw the brake rule mended. Then warn of windows of 200: the
# same `k`, and a fifth of the tokens. The next lessons compare at equal cost for that reason.

# %%
# One row a method.
board = Scoreboard(static)
board.add("fixed 500/0", FixedSizeChunker(500))
board.add("fixed 1000/0", FixedSizeChunker(1000))
board.add("fixed 1000/200", FixedSizeChunker(1000, 200))
board.add("sliding 1000/200", SlidingWindowChunker(1000, 200))
board.add("fixed 200/0", FixedSizeChunker(200))
board.add("tokens 256/0", FixedSizeChunker(256, tokenizer="cl100k"))
board

# %%
# Question by question, against windows of 1,000 without overlap.
for name in ("fixed 1000/200", "sliding 1000/200", "fixed 200/0", "tokens 256/0"):
    print(board.compare(name, "fixed 1000/0"))

# %% [markdown]
# The overlap makes all 25 cut answers whole, and yet no gain in recall shows: −0.5 points, in an interval from −5.3 to
# +4.3. Few answers were cut, half an answer counts half, and neighbours that come together bring text twice. That the
# half can say the opposite, recall does not see; "gold cut" does. Sliding windows may gain or lose (the interval holds
# 0) and surely cost: 1776 tokens a question for 1272. Windows of 200 lose 18.5 points, but five of them are 267 tokens:
# the same *k* is not the same budget. Between tokens and characters nothing is decided.
#
# ### What the model does not read
#
# Lesson 00 showed that MiniLM reads 256 tokens of a text. Add a sentence behind them, and ask `truncated`, which lists
# the texts that a model does not read to the end. Then see what that does to our questions, with windows of 2,000
# characters, where the limit falls near the middle: does it matter in which half an answer stands?

# %% [markdown] tags=["speaker"]
# **What the model does not read · 4 min** Take bets on MiniLM's cosine for two texts that differ in the last sentence.
# A one with six zeros settles it. Read the second table by columns: first halves, then second halves. `found_by_half`
# is long; run its rescue, and spend the time on what 85 of 214 means for their own index.

# %%
# Two texts that differ only at the end.
pair = [novella[:2000], novella[:2000] + " The spare key to the Clock House hangs behind the barometer."]
for model in (static, minilm):
    one, other = model.encode(pair)
    print(f"{model.name}: limit {model.max_tokens}, cosine {one @ other:.6f}, truncated {truncated(model, pair)}")

# %%
# Gold answers found, by the half of the chunk in which they begin. (Those that are cut are left out.)
def found_by_half(model, size=2000):
    pieces = [c for name, text in documents.items() for c in FixedSizeChunker(size).chunk(text, name)]
    hits = ChunkIndex(pieces, model).search_many([question.question for question in questions], k=5)
    tally = {"first half": [], "second half": []}
    for question, near in zip(questions, hits):
        for g in question.spans:
            for c in pieces:
                if c.document == g.document and c.start <= g.start and g.end <= c.end:
                    half = "first half" if g.start - c.start < size / 2 else "second half"
                    tally[half].append(c in [hit.chunk for hit in near])
    return {half: f"{100 * sum(found) / len(found):.0f} % of {len(found)}" for half, found in tally.items()}


too_long = truncated(minilm, [chunk.text for chunk in chunks])
print(f"{len(too_long)} of {len(chunks)} chunks of 1,000 characters are too long for MiniLM")
pd.DataFrame({model.name: found_by_half(model) for model in (minilm, static)}).T

# %% [markdown]
# For MiniLM the two texts are one, and the spare key does not exist. It finds 65 % in first halves; in second halves, mostly
# unread, 31 %. The static model, reading everything, finds second halves no worse (but the halves have different questions).
# At 1,000 characters, MiniLM already drops the ends of 85 chunks. So count chunks in the tokens of *your* embedder, and ask
# `truncated` before you index.

# %% [markdown]
# ## Break it
#
# The window counts and reads nothing. See where it cuts Captain Oster's report of the damage to her ship (outlined), and
# what stands just before the cut, where any reader would have cut. Overlap hides such a cut and pays for it; lesson 02 looks
# for the paragraph.

# %% [markdown] tags=["speaker"]
# **Break it · 2 min** 119 of 206 cuts lie inside a word; have one read aloud. Then the captain's report, cut just after
# a blank line. Ask what a person with scissors would have used, and stop there: it is the next lesson.

# %%
# All cuts of windows of 1,000, and one of them.
cuts = [(text, end) for text in documents.values() for _, end in fixed_spans(text, 1000)[:-1]]
word = sum(text[end - 1].isalnum() and text[end].isalnum() for text, end in cuts)
near = sum("\n\n" in text[end - 100 : end] for text, end in cuts)
print(f"{len(cuts)} cuts: {word} inside a word; {near} less than 100 characters after the end of a paragraph")
damage = next(question for question in questions if question.id == "novella-16").spans
show_chunks(FixedSizeChunker(1000), novella, around=damage[0], highlight=damage, limit=600)

# %% [markdown]
# ## Exercises
#
# **1.1 Recall.** The manual has 34,175 characters. How many windows of 800 with an overlap of 150 does it give? Work it out
# without cutting.
#
# <details><summary>Hint</summary>
#
# Take the overlap off the length, divide by what each window adds, and round up: `ceil`.
#
# </details>

# %% [markdown] tags=["speaker"]
# **Exercises · 3 min** 1.1 at once, on paper, as it is the formula again; the slip is to round down. 1.2 in pairs; the
# trap is an overlap that does by luck, where the next larger one fails. 1.3 is for home, and a real one: token offsets,
# and no useless last window.

# %% tags=["exercise"]
# BEGIN SOLUTION
number_of_windows = ceil((34_175 - 150) / (800 - 150))
# END SOLUTION
# STARTER: number_of_windows = ...

# %% tags=["check"]
with check("1.1 Recall"):
    assert number_of_windows == len(fixed_spans(manual, 800, 150)), "what does each further window add?"

# %% [markdown]
# **1.2 Apply.** Your windows must be of 400 characters. Find the smallest overlap, a multiple of 10, from which on some
# window holds each gold answer whole.
#
# <details><summary>Hint</summary>
#
# `held(400, overlap)` must be `len(gold)`, and stay so: a smaller overlap may do by luck, and the next one fail. So
# look for the largest that fails.
#
# </details>

# %% tags=["exercise"]
# BEGIN SOLUTION
smallest = 10 + max(overlap for overlap in range(0, 400, 10) if held(400, overlap) < len(gold))
# END SOLUTION
# STARTER: smallest = ...

# %% tags=["check"]
with check("1.2 Apply"):
    cut = [n for n in range(0, 400, 10) if held(400, n) < len(gold)]
    still = [n for n in cut if n >= smallest]
    assert not still, f"with an overlap of {still[0]} some answers are cut"
    assert smallest == cut[-1] + 10, "a smaller multiple of 10 does it too"

# %% [markdown]
# **1.3 Match the library exactly.** Write token windows that equal those of `TokenTextSplitter` on the manual and the
# meeting. `tokens("cl100k").offsets(text)` gives the character at which each token begins.
#
# <details><summary>Hint</summary>
#
# With `len(text)` behind the offsets, the tokens from *i* to *j* are `text[edges[i]:edges[j]]`. A `range` of starts
# that ends at the number of tokens less the overlap never makes a useless last window. (`offsets` has a place for each
# token; where several make one character, as in the leaflet, it comes again. `starts`, of lesson 00, has it once.)
#
# </details>

# %% tags=["exercise"]
def token_windows(text, size, overlap):
    edges = [*tokens("cl100k").offsets(text), len(text)]
    # BEGIN SOLUTION
    last = len(edges) - 1
    starts = range(0, max(last - overlap, 1), size - overlap)
    return [text[edges[start] : edges[min(start + size, last)]] for start in starts]
    # END SOLUTION
    # STARTER: # at which tokens does a window start, and where does it end?
    # STARTER: raise NotImplementedError

# %% tags=["check"]
with check("1.3 Match the library exactly"):
    theirs = TokenTextSplitter("cl100k_base", chunk_size=256, chunk_overlap=64)
    assert token_windows(manual, 256, 64) == theirs.split_text(manual)
    assert token_windows(documents["users_meeting.txt"], 256, 64) == theirs.split_text(documents["users_meeting.txt"])

# %% [markdown]
# ## Key points
#
# - A size counts code points, or the tokens of one model. A cut belongs between graphemes.
# - Three faults to look for in any window loop: a step of zero or less, a last window inside the one before, a cut
#   inside a character.
# - Windows: (length − overlap) / (size − overlap), rounded up. An overlap of *n* keeps answers of up to *n* + 1
#   characters whole.
# - Overlap mended every cut answer here, and recall showed no gain.
# - An embedding model drops what is too long, in silence.

# %% [markdown] tags=["speaker"]
# **Key points · 1 min** Ask which point surprised most. It is usually the fourth: every cut answer mended, and recall
# sees nothing. Leave it on the board; lessons 02 and 03 meet it again.

# %% [markdown]
# ## Quiz
#
# 1. Windows of 500 with an overlap of 100: how long may an answer be, to be whole in some window wherever it stands?
#
# <details><summary>Answer</summary>
#
# 101 characters. If the end of a window cuts it, at least one of them lies beyond, so at most 100 lie before: just what the
# next window repeats.
#
# </details>
#
# 2. `while start < len(text): end = min(start + size, len(text)); …; start = end - overlap`. What happens?
#
# <details><summary>Answer</summary>
#
# With any overlap above 0 it never ends: once `end` is the end of the text, `start` is the same each time.
#
# </details>
#
# 3. Your limit is 1,000 characters, and a customer sends Chinese. What changes?
#
# <details><summary>Answer</summary>
#
# A chunk has over five times the cl100k tokens of English; MiniLM stops after a quarter, and knows few of the signs.
# Count tokens.
#
# </details>
#
# 4. You raise the overlap from 0 to half the size, at the same *k*. What doubles, and what does not?
#
# <details><summary>Answer</summary>
#
# Chunks, storage and embeddings nearly double. The tokens retrieved a question stay about the same, as *k* and the size
# do, but some of them come twice.
#
# </details>
#
# 5. Recall shows no difference between windows with overlap and without. Is overlap useless, then?
#
# <details><summary>Answer</summary>
#
# No. These questions cannot tell the two apart in recall, in either direction. "Gold cut" fell to 0, which matters where
# half an answer misleads. Whether that is worth the storage, your own documents must say.
#
# </details>

# %% [markdown] tags=["speaker"]
# **Quiz · 1 min** Question 2 aloud: somebody plays the loop with an overlap of 1 and says start and end at each step,
# until the class sees that it stands still. The rest at home.

# %% [markdown]
# ## Take it with you
#
# Windows between graphemes. You need `pip install regex`.

# %% [markdown] tags=["speaker"]
# **Take it with you · 1 min** Run it in an empty notebook on somebody's own file, at 500, and look at the edges of the
# chunks together. What they complain of is the plan of the next two lessons.

# %% tags=["scaffold"]
# Runs on its own.
from bisect import bisect_left, bisect_right

import regex


def fixed_windows(text, size, overlap=0):
    """(start, end) of windows of `size` characters; only a grapheme that is longer makes a longer one."""
    if not 0 <= overlap < size:
        raise ValueError(f"overlap={overlap}: must be from 0 to less than size={size}")
    edges, spans, start, end = [0, *(match.end() for match in regex.finditer(r"\X", text))], [], 0, 0
    while end < len(text):
        end = edges[max(bisect_right(edges, start + size) - 1, bisect_right(edges, start))]
        if text[start:end].strip():
            spans.append((start, end))
        start = edges[bisect_left(edges, max(start + 1, end - overlap))]
    return spans


fixed_windows("One two three.", 6, 2)
