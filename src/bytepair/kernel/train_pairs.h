/* The pairs that may still be merged: how often each occurs, where, and which is best.

   Only pairs that occur at least `threshold` times have to be here. train.c argues why that is
   enough. Nothing here knows how text is stored. */
#ifndef BYTEPAIR_TRAIN_PAIRS_H
#define BYTEPAIR_TRAIN_PAIRS_H

#include <string.h>

#include "memory.h"

#if defined(__GNUC__)
#define BP_PREFETCH(address) __builtin_prefetch(address)
#else
#define BP_PREFETCH(address) ((void)(address))
#endif

/* The fuzz target sets this to 1: small numbers, so that little text meets all of the code. */
#ifndef TRAIN_TINY
#define TRAIN_TINY 0
#endif

/* A slot of the hash table, open addressing; free if key is 0. */
struct pair_slot {
    uint64_t key;   /* of pair_key */
    uint64_t count;
    size_t list;    /* where the list of its places begins in the pool */
};

/* An entry of the heap; its count may be out of date, but never too low. */
struct candidate {
    uint64_t count;
    uint64_t key;
};

enum { MIN_SLOT_BITS = TRAIN_TINY ? 3 : 12, MAX_SLOT_BITS = sizeof(size_t) * 8 - 8 };

/* A list in the pool: the key's halves, the number of places, the places. */
enum { LIST_KEY = 0, LIST_NUMBER = 2, LIST_PLACES = 3 };

struct pair_store {
    uint64_t threshold;
    struct pair_slot *slots;    /* a power of two of them, at most two thirds in use */
    size_t mask, used;
    unsigned shift;
    struct candidate *heap;     /* four children a node, in one line of the cache or two */
    size_t heap_number, heap_room;
    uint32_t *pool;             /* the lists, one after the other; cell 0 is in none */
    size_t pool_used, pool_room;
};

/* Orders as (left, right) does, and is never 0. */
static inline uint64_t pair_key(uint32_t left, uint32_t right)
{
    return (((uint64_t)left << 32) | right) + 1;
}

static inline uint32_t key_left(uint64_t key) { return (uint32_t)((key - 1) >> 32); }

static inline uint32_t key_right(uint64_t key) { return (uint32_t)(key - 1); }

static inline struct pair_slot *pairs_home(const struct pair_store *pairs, uint64_t key)
{
    return &pairs->slots[(key * UINT64_C(0x9E3779B97F4A7C15)) >> pairs->shift];
}

/* The slot that holds `key`, or the free one where it belongs. */
static inline struct pair_slot *pairs_slot(const struct pair_store *pairs, uint64_t key)
{
    struct pair_slot *slot = pairs_home(pairs, key);
    while (slot->key != key && slot->key != 0)
        slot = slot == &pairs->slots[pairs->mask] ? pairs->slots : slot + 1;
    return slot;
}

static bool pairs_set_slots(struct pair_store *pairs, unsigned bits)
{
    struct pair_slot *slots = NULL;
    if (bits < MAX_SLOT_BITS)
        slots = bp_allocate_zeroed((size_t)1 << bits, sizeof *slots);
    if (slots == NULL)
        return false;
    pairs->slots = slots;
    pairs->mask = ((size_t)1 << bits) - 1;
    pairs->shift = 64 - bits;
    pairs->used = 0;
    return true;
}

/* Makes room for `more` keys, leaving out the pairs that fell below the threshold: a table of the
   same size may do. */
static bool pairs_rehash(struct pair_store *pairs, size_t more)
{
    const struct pair_store old = *pairs;
    size_t live = more;
    for (size_t i = 0; i <= old.mask; i++)
        live += old.slots[i].key != 0 && old.slots[i].count >= old.threshold;
    unsigned bits = MIN_SLOT_BITS;
    while (bits < MAX_SLOT_BITS && ((size_t)1 << bits) / 3 < live)
        bits++;
    if (!pairs_set_slots(pairs, bits))
        return false;
    for (size_t i = 0; i <= old.mask; i++) {
        if (old.slots[i].key != 0 && old.slots[i].count >= old.threshold) {
            *pairs_slot(pairs, old.slots[i].key) = old.slots[i];
            pairs->used++;
        }
    }
    free(old.slots);
    return true;
}

static bool pairs_reserve_slots(struct pair_store *pairs, size_t more)
{
    const size_t most = pairs->mask / 3 * 2;
    return (more <= most && pairs->used <= most - more) || pairs_rehash(pairs, more);
}

/* Moves the lists that may still be needed together. Lists of merged pairs, and of pairs that
   fell below the threshold, are most of the pool after some thousand merges. */
static void pairs_drop_dead_lists(struct pair_store *pairs)
{
    size_t kept = 1;
    for (size_t list = 1, size; list < pairs->pool_used; list += size) {
        uint64_t key;
        memcpy(&key, &pairs->pool[list + LIST_KEY], sizeof key);
        size = LIST_PLACES + (size_t)pairs->pool[list + LIST_NUMBER];
        struct pair_slot *slot = pairs_slot(pairs, key);
        if (slot->key != key || slot->count < pairs->threshold)
            continue;
        if (kept != list)
            memmove(&pairs->pool[kept], &pairs->pool[list], size * sizeof *pairs->pool);
        slot->list = kept;
        kept += size;
    }
    pairs->pool_used = kept;
}

/* Makes room for `places` places in at most `lists` new lists. The pool is tidied first; it grows
   if that does not free a quarter, so that tidying stays cheap for each place that it frees. */
static bool pairs_reserve(struct pair_store *pairs, size_t lists, size_t places)
{
    if (!pairs_reserve_slots(pairs, lists))
        return false;
    if (lists > pairs->heap_room - pairs->heap_number) {
        struct candidate *heap =
            bp_grow(pairs->heap, &pairs->heap_room, pairs->heap_number + lists, sizeof *heap);
        if (heap == NULL)
            return false;
        pairs->heap = heap;
    }
    if (lists > (SIZE_MAX - places) / LIST_PLACES)
        return false;
    const size_t more = places + LIST_PLACES * lists;
    if (more <= pairs->pool_room - pairs->pool_used)
        return true;
    pairs_drop_dead_lists(pairs);
    const size_t most = pairs->pool_room / 4 * 3;
    if (more <= most && pairs->pool_used <= most - more)
        return true;
    if (more > SIZE_MAX - pairs->pool_used)
        return false;
    uint32_t *pool = bp_grow(pairs->pool, &pairs->pool_room, pairs->pool_used + more, sizeof *pool);
    if (pool != NULL)
        pairs->pool = pool;
    return pool != NULL;
}

static inline bool is_better(struct candidate one, struct candidate other)
{
    return one.count > other.count || (one.count == other.count && one.key < other.key);
}

static inline void heap_push(struct pair_store *pairs, struct candidate entry)
{
    struct candidate *heap = pairs->heap;
    size_t at = pairs->heap_number++;
    while (at > 0 && is_better(entry, heap[(at - 1) / 4])) {
        heap[at] = heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    heap[at] = entry;
}

/* Puts `entry` in the place of the top. */
static inline void heap_replace_top(struct pair_store *pairs, struct candidate entry)
{
    struct candidate *heap = pairs->heap;
    size_t at = 0;
    for (;;) {
        const size_t first = 4 * at + 1;
        if (first >= pairs->heap_number)
            break;
        const size_t end = first + 4 < pairs->heap_number ? first + 4 : pairs->heap_number;
        size_t best = first;
        for (size_t child = first + 1; child < end; child++)
            best = is_better(heap[child], heap[best]) ? child : best;
        if (!is_better(heap[best], entry))
            break;
        heap[at] = heap[best];
        at = best;
    }
    heap[at] = entry;
}

static inline void heap_drop_top(struct pair_store *pairs)
{
    const struct candidate last = pairs->heap[--pairs->heap_number];
    if (pairs->heap_number > 0)
        heap_replace_top(pairs, last);
}

/* Takes the best pair out of the heap; NULL if none reaches the threshold. */
static struct pair_slot *pairs_take_best(struct pair_store *pairs)
{
    while (pairs->heap_number > 0 && pairs->heap[0].count >= pairs->threshold) {
        const struct candidate top = pairs->heap[0];
        struct pair_slot *slot = pairs_slot(pairs, top.key);
        const uint64_t count = slot->key == top.key ? slot->count : 0;
        if (count != top.count && count >= pairs->threshold) {
            heap_replace_top(pairs, (struct candidate){count, top.key});
            continue;
        }
        heap_drop_top(pairs);
        for (size_t i = 0; i <= 4 && i < pairs->heap_number; i++)
            BP_PREFETCH(pairs_home(pairs, pairs->heap[i].key));  /* who will be asked for next */
        if (count == top.count)
            return slot;
    }
    return NULL;
}

/* Begins the list of a pair and puts it into the heap; the list's cells are the caller's to fill.
   There is room: pairs_reserve has been called. */
static inline size_t pairs_begin_list(struct pair_store *pairs, struct pair_slot *slot,
                                      size_t number)
{
    const size_t list = pairs->pool_used;
    memcpy(&pairs->pool[list + LIST_KEY], &slot->key, sizeof slot->key);
    pairs->pool[list + LIST_NUMBER] = (uint32_t)number;
    pairs->pool_used = list + LIST_PLACES + number;
    slot->list = list;
    heap_push(pairs, (struct candidate){slot->count, slot->key});
    return list + LIST_PLACES;
}

/* A pair that is not here yet, with its list; returns where the list's places go. */
static inline size_t pairs_add(struct pair_store *pairs, uint64_t key, uint64_t count,
                               size_t number)
{
    struct pair_slot *slot = pairs_slot(pairs, key);
    *slot = (struct pair_slot){key, count, 0};
    pairs->used++;
    return pairs_begin_list(pairs, slot, number);
}

/* Some occurrences of a pair are gone; a pair that is not here is below the threshold for good. */
static inline void pairs_lose(struct pair_store *pairs, uint64_t key, uint64_t count)
{
    struct pair_slot *slot = pairs_slot(pairs, key);
    if (slot->key == key)
        slot->count -= count;
}

/* An empty store, whatever was in it, ready for counting: nothing is too rare to be kept. */
static bool pairs_clear(struct pair_store *pairs)
{
    pairs->threshold = 0;
    free(pairs->slots);
    pairs->slots = NULL;
    pairs->heap_number = 0;
    pairs->pool_used = 1;
    if (pairs->pool == NULL)
        pairs->pool = bp_grow(NULL, &pairs->pool_room, 1, sizeof *pairs->pool);
    return pairs->pool != NULL && pairs_set_slots(pairs, MIN_SLOT_BITS);
}

/* Counts a place of a pair; until pairs_begin_lists, slot->list is the number of its places. */
static bool pairs_count(struct pair_store *pairs, uint64_t key, uint64_t weight)
{
    struct pair_slot *slot = pairs_slot(pairs, key);
    if (slot->key == 0) {
        if (!pairs_reserve_slots(pairs, 1))
            return false;
        slot = pairs_slot(pairs, key);
        slot->key = key;
        pairs->used++;
    }
    slot->count += weight;
    slot->list++;
    return true;
}

/* After counting: begins the lists of the pairs that reach the threshold, empty. */
static bool pairs_begin_lists(struct pair_store *pairs, uint64_t threshold)
{
    pairs->threshold = threshold;
    size_t lists = 0, places = 0;
    for (size_t i = 0; i <= pairs->mask; i++) {
        if (pairs->slots[i].key != 0 && pairs->slots[i].count >= pairs->threshold) {
            lists++;
            places += pairs->slots[i].list;
        }
    }
    if (!pairs_reserve(pairs, lists, places))
        return false;
    for (size_t i = 0; i <= pairs->mask; i++) {
        struct pair_slot *slot = &pairs->slots[i];
        if (slot->key != 0 && slot->count >= pairs->threshold) {
            pairs_begin_list(pairs, slot, slot->list);
            pairs->pool[slot->list + LIST_NUMBER] = 0;
        }
    }
    return true;
}

/* Appends to a list of pairs_begin_lists, if the pair has one. */
static inline void pairs_append(struct pair_store *pairs, uint64_t key, uint32_t place)
{
    const struct pair_slot *slot = pairs_slot(pairs, key);
    if (slot->key == key && slot->count >= pairs->threshold) {
        uint32_t *list = &pairs->pool[slot->list];
        list[LIST_PLACES + list[LIST_NUMBER]++] = place;
    }
}

static void pairs_free(struct pair_store *pairs)
{
    free(pairs->slots);
    free(pairs->heap);
    free(pairs->pool);
}

#endif
