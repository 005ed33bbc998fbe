/* From chunk counts to merges, exactly as training.py finds them.

   The rule: of all pairs of adjacent tokens inside chunks, take the one with the highest count, and
   of equals the smallest; give it the next id; replace it left to right, without overlap. Counting
   again after every merge would do (reference.py). What is done instead rests on one observation:

       A merge creates only pairs that contain its new id. So a pair gains occurrences only while
       the younger of its two ids is being made; from then on it can only lose them.

   Lists.      The places of a pair are listed once, in the merge that creates it, and the list
               never grows. It is visited once, when the pair is merged; a place where the pair no
               longer stands is recognised then (train_text.h says how) and left out. A list is in
               ascending order, because the list it was made from is, so that replacing goes from
               left to right: in a run `aaa` the second place is stale when it is reached.
   Heap.       A pair has one entry, whose count was right when it was made and so is never too low
               later. A top that is still right is therefore the best pair; one that is too high
               goes back with the right count.
   Threshold.  Every pair that occurs `threshold` times is listed. That stays true when the
               threshold rises, and when pairs created with fewer occurrences are not listed, since
               they never get more. It is raised to a guess at the count of the last merge, which
               spares most pairs a list (a fifth off the time of 230 MB of English); while the best
               listed pair reaches it, that pair is the best of all. When none does, and the guess
               was above min_count, all pairs are counted and listed again with min_count, once,
               and the guessing ends.
   Neighbours. A merge meets the same few neighbours again and again: it adds up by neighbour's id
               what they gain and lose, and touches the hash table once for each, not for each
               place.

   No sum can overflow: every count of a pair is at most the number of tokens in the text, and a
   text of 2^64 tokens is refused. Places are 32 bits: 2^32 and more, with those between chunks,
   are refused too. A run of one byte is no worst case: every merge halves it.

   Memory at its peak, in bytes a place (one for each byte of a distinct chunk, and 1 to 4 more a
   chunk): 3 for the text, 6 if wide; 4 to 6 for the lists; the rest for table, heap and notes. In
   all 9 for 230 MB of English and 32,768 ids, 11 for 28 MB multilingual, 13 to 18 for one chunk of
   4 MB without a space. */
#include "bytepair.h"
#include "train_pairs.h"

enum {
    FIRST_ID = 256,
    BYTES = TRAIN_TINY ? 16 : 256,      /* different ones in chunks */
    FIRST_GUESS = TRAIN_TINY ? 3 : 64,  /* merges before the threshold is first raised */
    GROUP = 4,          /* places that share a weight, see train_text.h */
    AHEAD = 16,         /* places that are fetched ahead: a third off the time of large texts */
    SIDES_AHEAD = 8     /* neighbours whose pairs are */
};

/* An id and the one after it mark edges and insides, and twice an id fits 32 bits. */
static const size_t MAX_MERGES = INT32_MAX - FIRST_ID;

/* What is asked for, checked. */
struct task {
    const uint8_t *chunks;
    const uint64_t *ends, *counts;
    size_t distinct, merges;
    uint64_t min_count;
    size_t places;      /* that the text needs */
    uint64_t length;    /* tokens before the first merge */
    uint64_t largest_count;
};

/* A merge that was found: the pair, its count, and the number of tokens in the text after it. */
struct finding {
    uint64_t key, count, length;
};

struct findings {
    struct finding *list;
    size_t number;
};

/* How often a pair occurs, and at how many places; then, where its next place goes in the pool, 0
   if it gets no list. */
struct tally {
    uint64_t weight, places;
};

/* A neighbour of merged pairs: an id and on which side it stands. */
#define LEFT(id) (2 * (id))
#define RIGHT(id) (2 * (id) + 1)

/* Where the pair that a neighbour makes with the new token stands. */
struct note {
    uint32_t place, side;
};

/* What a merge saw on its way. Two notes for each occurrence, a tally for each neighbour. */
struct notebook {
    struct note *notes;
    size_t number, room;
    struct tally *tallies;  /* by side; all zero between merges */
    uint32_t *touched;      /* sides that have a tally */
    size_t touched_number;
};

struct trainer {
    struct pair_store pairs;
    struct notebook notebook;
    uint32_t *sizes;    /* the length of each token, in places; that of an edge is 1 */
    uint32_t edge;      /* the id that stands between chunks */
};

static size_t places_needed(size_t chunk_length)
{
    return chunk_length < 2 ? 0 : (chunk_length / GROUP + 1) * GROUP;
}

static bool notebook_reserve(struct notebook *notebook, size_t occurrences)
{
    if (occurrences <= notebook->room / 2)
        return true;
    struct note *notes =
        bp_grow(notebook->notes, &notebook->room, 2 * occurrences, sizeof *notes);
    if (notes != NULL)
        notebook->notes = notes;
    return notes != NULL;
}

static inline void take_note(struct notebook *notebook, uint32_t side, uint64_t weight,
                             uint32_t place)
{
    struct tally *tally = &notebook->tallies[side];
    if (tally->places == 0)
        notebook->touched[notebook->touched_number++] = side;
    tally->weight += weight;
    tally->places++;
    notebook->notes[notebook->number++] = (struct note){place, side};
}

/* Without a branch, which nothing could predict: what gets no list goes to cell 0. */
static inline void put_place(struct pair_store *pairs, struct tally *tally, uint32_t place)
{
    pairs->pool[tally->places] = place;
    tally->places += tally->places != 0;
}

/* The pair of a neighbour with the old token on its side, or with the new one. */
static inline uint64_t pair_of(uint32_t side, uint32_t left, uint32_t right)
{
    return side % 2 == 0 ? pair_key(side / 2, left) : pair_key(right, side / 2);
}

/* Takes the neighbours' old pairs off and begins their new ones, after `key` became `new`. */
static void settle_tallies(struct trainer *trainer, uint64_t key, uint32_t new)
{
    struct pair_store *pairs = &trainer->pairs;
    const struct notebook *notebook = &trainer->notebook;
    const uint32_t left = key_left(key), right = key_right(key);
    /* Where two occurrences touch, the second first stood right of a `new`, as left of the pair,
       and then became one: noted as (new, left), which is gone, and as (new, new). */
    const uint64_t twins = notebook->tallies[LEFT(new)].weight;
    for (size_t i = 0; i < notebook->touched_number; i++) {
        if (i + SIDES_AHEAD < notebook->touched_number) {
            const uint32_t ahead = notebook->touched[i + SIDES_AHEAD];
            BP_PREFETCH(pairs_home(pairs, pair_of(ahead, left, right)));
            if (notebook->tallies[ahead].weight >= pairs->threshold)
                BP_PREFETCH(pairs_home(pairs, pair_of(ahead, new, new)));
        }
        const uint32_t side = notebook->touched[i];
        struct tally *tally = &notebook->tallies[side];
        const uint64_t lost = pair_of(side, left, right);
        if (lost != key && side != LEFT(new))  /* gone already; never there */
            pairs_lose(pairs, lost, tally->weight);
        const uint64_t gained = tally->weight - (side == RIGHT(left) ? twins : 0);
        if (gained >= pairs->threshold)
            tally->places = pairs_add(pairs, pair_of(side, new, new), gained,
                                      (size_t)tally->places);
        else
            tally->places = 0;
    }
}

/* Draws the consequences of a merge from the notebook, and empties it. */
static bool settle(struct trainer *trainer, uint64_t key, uint32_t new)
{
    struct notebook *notebook = &trainer->notebook;
    if (!pairs_reserve(&trainer->pairs, notebook->touched_number, notebook->number))
        return false;
    settle_tallies(trainer, key, new);
    for (size_t i = 0; i < notebook->number; i++) {
        const struct note note = notebook->notes[i];
        put_place(&trainer->pairs, &notebook->tallies[note.side], note.place);
    }
    for (size_t i = 0; i < notebook->touched_number; i++)
        notebook->tallies[notebook->touched[i]] = (struct tally){0, 0};
    notebook->number = notebook->touched_number = 0;
    return true;
}

/* Begins the lists of the pairs of bytes, tallied in first[BYTES * left + right]. */
static bool begin_byte_pairs(struct pair_store *pairs, struct tally *first)
{
    size_t lists = 0, places = 0;
    for (size_t pair = 0; pair < BYTES * BYTES; pair++) {
        if (first[pair].weight >= pairs->threshold) {
            lists++;
            places += (size_t)first[pair].places;
        }
    }
    if (!pairs_reserve(pairs, lists, places))
        return false;
    for (uint32_t pair = 0; pair < BYTES * BYTES; pair++) {
        struct tally *tally = &first[pair];
        const uint64_t key = pair_key(pair / BYTES, pair % BYTES);
        if (tally->weight >= pairs->threshold)
            tally->places = pairs_add(pairs, key, tally->weight, (size_t)tally->places);
        else
            tally->places = 0;
    }
    return true;
}

/* Raises the threshold to a third of what the last merge will count at this rate: while the merges
   grow by half, counts of natural text fall to .48 to .63 of what they were. */
static void raise_threshold(struct pair_store *pairs, uint64_t count, size_t merges, size_t wanted)
{
    for (; merges < wanted; merges += merges / 2)
        count = count / 11 * 6;
    if (pairs->threshold < count / 3)
        pairs->threshold = count / 3;
}

/* Up to 65,278 merges and counts below 2^32, which is the common case; and all else, a fifth
   slower. */
#define SYMBOL uint16_t
#define WEIGHT uint32_t
#define WIDTH(name) name##_narrow
#include "train_text.h"
#undef SYMBOL
#undef WEIGHT
#undef WIDTH

#define SYMBOL uint32_t
#define WEIGHT uint64_t
#define WIDTH(name) name##_wide
#include "train_text.h"

static bool is_narrow(const struct task *task)
{
    return FIRST_ID + task->merges + 1 <= UINT16_MAX && task->largest_count <= UINT32_MAX;
}

/* Checks the arguments, measures the text, and lowers the number of merges to what it can have at
   most: a merge takes away a token at least. */
static bp_status measure(struct task *task)
{
    if (task->merges > MAX_MERGES || task->min_count == 0)
        return BP_BAD_INPUT;
    uint64_t start = 0, places = GROUP;
    for (size_t i = 0; i < task->distinct; i++) {
        const uint64_t end = task->ends[i], count = task->counts[i];
        if (end <= start || count == 0)
            return BP_BAD_INPUT;
        if (end > UINT32_MAX || count > (UINT64_MAX - task->length) / (end - start))
            return BP_TOO_LARGE;
        task->length += count * (end - start);
        if (count > task->largest_count)
            task->largest_count = count;
        places += places_needed((size_t)(end - start));
        start = end;
    }
    if (places > UINT32_MAX || places > SIZE_MAX)
        return BP_TOO_LARGE;
    task->places = (size_t)places;
    if (task->merges > start - task->distinct)
        task->merges = (size_t)(start - task->distinct);
    return BP_OK;
}

static bool trainer_begin(struct trainer *trainer, const struct task *task)
{
    const size_t ids = FIRST_ID + task->merges;
    trainer->edge = (uint32_t)ids;
    trainer->sizes = bp_allocate(ids + 1, sizeof *trainer->sizes);
    trainer->notebook.touched = bp_allocate(2 * ids, sizeof *trainer->notebook.touched);
    trainer->notebook.tallies = bp_allocate_zeroed(2 * ids, sizeof *trainer->notebook.tallies);
    if (trainer->sizes == NULL || trainer->notebook.touched == NULL
        || trainer->notebook.tallies == NULL || !pairs_clear(&trainer->pairs))
        return false;
    trainer->pairs.threshold = task->min_count;
    for (size_t id = 0; id < FIRST_ID; id++)
        trainer->sizes[id] = 1;
    trainer->sizes[trainer->edge] = 1;
    return true;
}

static void trainer_end(struct trainer *trainer)
{
    pairs_free(&trainer->pairs);
    free(trainer->notebook.notes);
    free(trainer->notebook.tallies);
    free(trainer->notebook.touched);
    free(trainer->sizes);
}

bp_status bp_train(const uint8_t *chunks, const uint64_t *ends, const uint64_t *counts,
                   size_t distinct, size_t merges, uint64_t min_count, uint32_t *pairs,
                   uint64_t *pair_counts, uint64_t *lengths, size_t *found)
{
    struct task task = {chunks, ends, counts, distinct, merges, min_count, 0, 0, 0};
    const bp_status status = measure(&task);
    if (status != BP_OK)
        return status;
    /* The caller's arrays are written when nothing can fail any more. */
    struct findings findings = {bp_allocate(task.merges, sizeof *findings.list), 0};
    struct trainer trainer = {0};
    const bool done = findings.list != NULL && trainer_begin(&trainer, &task)
                      && (is_narrow(&task) ? train_narrow(&trainer, &task, &findings)
                                           : train_wide(&trainer, &task, &findings));
    trainer_end(&trainer);
    if (done) {
        lengths[0] = task.length;
        for (size_t i = 0; i < findings.number; i++) {
            pairs[2 * i] = key_left(findings.list[i].key);
            pairs[2 * i + 1] = key_right(findings.list[i].key);
            pair_counts[i] = findings.list[i].count;
            lengths[i + 1] = findings.list[i].length;
        }
        *found = findings.number;
    }
    free(findings.list);
    return done ? BP_OK : BP_NO_MEMORY;
}
