/* The ids of one chunk: the pair of the lowest rank is merged first, all its occurrences left to right.

   For words, the ranks of all pairs stand in an array that is searched for each merge. From
   LONG_CHUNK bytes on they are in a heap, ordered by rank and then by place, with the tokens in a
   doubly linked list: since a merge makes only pairs of a higher rank than its own, the heap gives
   them in the order of the rule, and time is near-linear. */
#include "merge.h"
#include "keys.h"

#include <stdlib.h>
#include <string.h>

#define LONG_CHUNK 64u

static inline uint64_t hash_pair(uint32_t left, uint32_t right) {
    const uint64_t hash = ((uint64_t)left << 32 | right) * BP_MULTIPLY_1;
    return hash ^ hash >> 29;
}

/* A slot is an id and the upper half of its pair's hash, which is nearly always enough to see that
   another pair is meant; so a table for 32 K merges is half a megabyte. */
static inline uint32_t tag_of(uint64_t hash) {
    return (uint32_t)(hash >> 32);
}

/* The id that a pair becomes, or BP_NO_ID. */
static inline uint32_t merged(const bp_merger *merger, uint32_t left, uint32_t right) {
    if ((left | right) < 256) {
        return merger->bytes[left << 8 | right];
    }
    const uint64_t hash = hash_pair(left, right);
    size_t place = (size_t)hash & merger->slot_mask;
    for (; merger->slots[place].id != BP_NO_ID; place = (place + 1) & merger->slot_mask) {
        if (merger->slots[place].tag == tag_of(hash)) {
            const uint32_t id = merger->slots[place].id;
            const uint32_t *pair = merger->pairs + 2 * (size_t)(id - 256);
            if (pair[0] == left && pair[1] == right) {
                return id;
            }
        }
    }
    return BP_NO_ID;
}

static bp_status add_pairs(bp_merger *merger, size_t merges) {
    for (size_t i = 0; i < merges; i++) {
        const uint32_t left = merger->pairs[2 * i], right = merger->pairs[2 * i + 1];
        const uint32_t id = (uint32_t)(256 + i);
        if (left >= id || right >= id || merged(merger, left, right) != BP_NO_ID) {
            return BP_BAD_INPUT;
        }
        if ((left | right) < 256) {
            merger->bytes[left << 8 | right] = id;
            continue;
        }
        const uint64_t hash = hash_pair(left, right);
        size_t place = (size_t)hash & merger->slot_mask;
        while (merger->slots[place].id != BP_NO_ID) {
            place = (place + 1) & merger->slot_mask;
        }
        merger->slots[place] = (bp_pair_slot){tag_of(hash), id};
    }
    return BP_OK;
}

/* In place; returns the number of tokens. `ranks` is scratch of the same length. */
static size_t merge_word(const bp_merger *merger, uint32_t *tokens, uint32_t *ranks,
                         size_t number) {
    for (size_t i = 0; i + 1 < number; i++) {
        ranks[i] = merged(merger, tokens[i], tokens[i + 1]);
    }
    while (number > 1) {
        uint32_t best = BP_NO_ID;
        size_t first = 0;
        for (size_t i = 0; i + 1 < number; i++) {
            first = ranks[i] < best ? i : first;
            best = ranks[i] < best ? ranks[i] : best;
        }
        if (best == BP_NO_ID) {
            break;
        }
        /* The leftmost occurrence; the next, if any, is the best of the next round. */
        tokens[first] = best;
        number--;
        memmove(tokens + first + 1, tokens + first + 2, (number - first - 1) * sizeof *tokens);
        memmove(ranks + first, ranks + first + 1, (number - first) * sizeof *ranks);
        if (first > 0) {
            ranks[first - 1] = merged(merger, tokens[first - 1], best);
        }
        if (first + 1 < number) {
            ranks[first] = merged(merger, best, tokens[first + 1]);
        }
    }
    return number;
}

/* ---- a long chunk --------------------------------------------------------------------------- */

static bp_status push(bp_merger *merger, uint32_t rank, uint32_t place) {
    if (merger->heap_used == merger->heap_room) {
        size_t room = merger->heap_room < 1024 ? 1024 : merger->heap_room * 2;
        uint64_t *heap = room > SIZE_MAX / sizeof *heap
                             ? NULL
                             : realloc(merger->heap, room * sizeof *heap);
        if (heap == NULL) {
            return BP_NO_MEMORY;
        }
        merger->heap = heap;
        merger->heap_room = room;
    }
    const uint64_t entry = (uint64_t)rank << 32 | place;
    size_t at = merger->heap_used++;
    while (at > 0 && merger->heap[(at - 1) / 4] > entry) {
        merger->heap[at] = merger->heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    merger->heap[at] = entry;
    return BP_OK;
}

static uint64_t pop(bp_merger *merger) {
    uint64_t *heap = merger->heap;
    const uint64_t top = heap[0], entry = heap[--merger->heap_used];
    const size_t used = merger->heap_used;
    size_t at = 0;
    for (;;) {
        size_t child = 4 * at + 1, least = child;
        if (child >= used) {
            break;
        }
        for (size_t i = child + 1; i < child + 4 && i < used; i++) {
            least = heap[i] < heap[least] ? i : least;
        }
        if (heap[least] >= entry) {
            break;
        }
        heap[at] = heap[least];
        at = least;
    }
    heap[at] = entry;
    return top;
}

/* The heap and a linked list; `tokens` is followed by as many words of scratch again, twice. */
static bp_status merge_long(bp_merger *merger, uint32_t *tokens, size_t number, size_t *left_over) {
    uint32_t *following = tokens + number, *preceding = following + number;
    const uint32_t end = (uint32_t)number;
    bp_status status = BP_OK;
    merger->heap_used = 0;
    for (uint32_t i = 0; i < end; i++) {
        following[i] = i + 1;
        preceding[i] = i - 1; /* wraps for the first: no place at all */
        uint32_t rank = i + 1 < end ? merged(merger, tokens[i], tokens[i + 1]) : BP_NO_ID;
        if (rank != BP_NO_ID && (status = push(merger, rank, i)) != BP_OK) {
            return status;
        }
    }
    while (merger->heap_used > 0) {
        const uint64_t entry = pop(merger);
        const uint32_t rank = (uint32_t)(entry >> 32), place = (uint32_t)entry;
        if (tokens[place] == BP_NO_ID || following[place] == end ||
            merged(merger, tokens[place], tokens[following[place]]) != rank) {
            continue; /* what stood there has been merged since */
        }
        const uint32_t gone = following[place], after = following[gone];
        tokens[place] = rank;
        tokens[gone] = BP_NO_ID;
        following[place] = after;
        if (after != end) {
            preceding[after] = place;
            uint32_t next = merged(merger, rank, tokens[after]);
            if (next != BP_NO_ID && (status = push(merger, next, place)) != BP_OK) {
                return status;
            }
        }
        if (preceding[place] != UINT32_MAX) {
            uint32_t next = merged(merger, tokens[preceding[place]], rank);
            if (next != BP_NO_ID && (status = push(merger, next, preceding[place])) != BP_OK) {
                return status;
            }
        }
    }
    size_t kept = 0;
    for (uint32_t i = 0; i < end; i = following[i]) {
        tokens[kept++] = tokens[i];
    }
    *left_over = kept;
    return BP_OK;
}

bp_status bp_merge(bp_merger *merger, const uint8_t *chunk, size_t size, const uint32_t **ids,
                   size_t *number) {
    if (size >= UINT32_MAX / 4) {
        return BP_TOO_LARGE;
    }
    if (3 * size > merger->scratch_room) {
        uint32_t *scratch = realloc(merger->scratch, 3 * size * sizeof *scratch);
        if (scratch == NULL) {
            return BP_NO_MEMORY;
        }
        merger->scratch = scratch;
        merger->scratch_room = 3 * size;
    }
    for (size_t i = 0; i < size; i++) {
        merger->scratch[i] = chunk[i];
    }
    *ids = merger->scratch;
    if (size >= LONG_CHUNK) {
        return merge_long(merger, merger->scratch, size, number);
    }
    *number = merge_word(merger, merger->scratch, merger->scratch + size, size);
    return BP_OK;
}

/* ---- a merger ------------------------------------------------------------------------------- */

bp_status bp_merger_init(bp_merger *merger, const uint32_t *pairs, size_t merges) {
    if (merges > UINT32_MAX / 2 - 256) {
        return BP_TOO_LARGE;
    }
    size_t room = BP_TINY ? 4 : 1024;
    while (room < 2 * merges) {
        room *= 2;
    }
    merger->vocabulary = 256 + merges;
    merger->slot_mask = room - 1;
    merger->bytes = malloc(65536 * sizeof *merger->bytes);
    merger->pairs = malloc((2 * merges + 1) * sizeof *merger->pairs);
    merger->slots = malloc(room * sizeof *merger->slots);
    if (merger->bytes == NULL || merger->pairs == NULL || merger->slots == NULL) {
        return BP_NO_MEMORY;
    }
    memset(merger->bytes, 0xFF, 65536 * sizeof *merger->bytes);
    memset(merger->slots, 0xFF, room * sizeof *merger->slots);
    if (merges > 0) {
        memcpy(merger->pairs, pairs, 2 * merges * sizeof *pairs);
    }
    return add_pairs(merger, merges);
}

void bp_merger_release(bp_merger *merger) {
    free(merger->bytes);
    free(merger->pairs);
    free(merger->slots);
    free(merger->scratch);
    free(merger->heap);
}
