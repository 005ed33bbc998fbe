/* Encoding: from text to ids.

   Words repeat, so nearly every chunk has been encoded before. Chunks up to fifteen bytes are looked
   up in a table whose slots are half a cache line: a key of sixteen bytes, and up to seven ids of two
   bytes with their number, which are stored whole and the place advanced by the number. A batch is
   hashed and prefetched before it is looked up. Longer chunks, and results that do not fit a slot,
   have theirs in an arena. Both tables are emptied when they reach their bound, so the memory of an
   encoder does not grow with the text.

   A chunk that is not there is merged: the pair of the lowest rank first, all its occurrences left to
   right. For words, the ranks of all pairs stand in an array that is searched for each merge. From
   LONG_CHUNK bytes on they are in a heap, ordered by rank and then by place, with the tokens in a
   doubly linked list: since a merge makes only pairs of a higher rank than its own, the heap gives
   them in the order of the rule, and time is near-linear. */
#include "keys.h"
#include "scan.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 512
#define BATCH_ROOM (BATCH + 64)
#define FIRST_SLOTS (1u << 12)
#define MOST_SLOTS (1u << 20)      /* 32 MB; five of eight are used at most */
#define MOST_LONG_SLOTS (1u << 19)
#define MOST_ARENA (64u << 20)     /* bytes of text and of ids */
#define LONGEST_REMEMBERED 256u
#define LONG_CHUNK 64u
#define NO_ID UINT32_MAX
#define IN_ARENA UINT16_MAX
#define SLOT_IDS 7

typedef struct {
    uint64_t low, high; /* high 0 is empty */
    uint16_t ids[SLOT_IDS];
    uint16_t number; /* of ids, or IN_ARENA: then ids[0..1] are the offset, ids[2] the number */
} slot;

typedef struct {
    uint64_t hash;
    uint32_t size, text, ids, number; /* offsets in the arenas; size 0 is empty */
} long_slot;

typedef struct {
    uint64_t pair; /* left << 32 | right */
    uint32_t id;   /* NO_ID is empty */
} pair_slot;

struct bp_encoder {
    uint32_t *bytes; /* the id that two bytes make, or NO_ID: 64 K entries */
    pair_slot *pairs;
    size_t pair_mask;
    size_t vocabulary; /* without special tokens */

    slot *slots;
    size_t mask, used;
    long_slot *longs;
    size_t long_mask, long_used;
    uint8_t *texts;
    size_t texts_used, texts_room;
    uint32_t *arena;
    size_t arena_used, arena_room;

    int is_cut;
    bp_scanner scanner;

    uint32_t *scratch; /* for merging long chunks */
    size_t scratch_room;
    uint64_t *heap;
    size_t heap_room, heap_used;
};

/* ---- pairs ---------------------------------------------------------------------------------- */

static inline int is_full(size_t used, size_t mask) {
    return used * 8 > mask * 5;
}

static inline size_t hash_pair(uint64_t pair) {
    pair *= BP_MULTIPLY_1;
    return (size_t)(pair >> 32 ^ pair >> 11);
}

/* The id that a pair becomes, or NO_ID. */
static inline uint32_t merged(const bp_encoder *encoder, uint32_t left, uint32_t right) {
    if ((left | right) < 256) {
        return encoder->bytes[left << 8 | right];
    }
    const uint64_t pair = (uint64_t)left << 32 | right;
    size_t place = hash_pair(pair) & encoder->pair_mask;
    while (encoder->pairs[place].id != NO_ID) {
        if (encoder->pairs[place].pair == pair) {
            return encoder->pairs[place].id;
        }
        place = (place + 1) & encoder->pair_mask;
    }
    return NO_ID;
}

static bp_status add_pairs(bp_encoder *encoder, const uint32_t *pairs, size_t merges) {
    for (size_t i = 0; i < merges; i++) {
        const uint32_t left = pairs[2 * i], right = pairs[2 * i + 1], id = (uint32_t)(256 + i);
        if (left >= id || right >= id || merged(encoder, left, right) != NO_ID) {
            return BP_BAD_INPUT;
        }
        if ((left | right) < 256) {
            encoder->bytes[left << 8 | right] = id;
            continue;
        }
        const uint64_t pair = (uint64_t)left << 32 | right;
        size_t place = hash_pair(pair) & encoder->pair_mask;
        while (encoder->pairs[place].id != NO_ID) {
            place = (place + 1) & encoder->pair_mask;
        }
        encoder->pairs[place] = (pair_slot){pair, id};
    }
    return BP_OK;
}

/* ---- merging one chunk ---------------------------------------------------------------------- */

/* In place; returns the number of tokens. `ranks` is scratch of the same length. */
static size_t merge_word(const bp_encoder *encoder, uint32_t *tokens, uint32_t *ranks,
                         size_t number) {
    for (size_t i = 0; i + 1 < number; i++) {
        ranks[i] = merged(encoder, tokens[i], tokens[i + 1]);
    }
    while (number > 1) {
        uint32_t best = NO_ID;
        size_t first = 0;
        for (size_t i = 0; i + 1 < number; i++) {
            first = ranks[i] < best ? i : first;
            best = ranks[i] < best ? ranks[i] : best;
        }
        if (best == NO_ID) {
            break;
        }
        /* The leftmost occurrence; the next, if any, is the best of the next round. */
        tokens[first] = best;
        number--;
        memmove(tokens + first + 1, tokens + first + 2, (number - first - 1) * sizeof *tokens);
        memmove(ranks + first, ranks + first + 1, (number - first) * sizeof *ranks);
        if (first > 0) {
            ranks[first - 1] = merged(encoder, tokens[first - 1], best);
        }
        if (first + 1 < number) {
            ranks[first] = merged(encoder, best, tokens[first + 1]);
        }
    }
    return number;
}

static bp_status push(bp_encoder *encoder, uint32_t rank, uint32_t place) {
    if (encoder->heap_used == encoder->heap_room) {
        size_t room = encoder->heap_room < 1024 ? 1024 : encoder->heap_room * 2;
        uint64_t *heap = room > SIZE_MAX / sizeof *heap
                             ? NULL
                             : realloc(encoder->heap, room * sizeof *heap);
        if (heap == NULL) {
            return BP_NO_MEMORY;
        }
        encoder->heap = heap;
        encoder->heap_room = room;
    }
    const uint64_t entry = (uint64_t)rank << 32 | place;
    size_t at = encoder->heap_used++;
    while (at > 0 && encoder->heap[(at - 1) / 4] > entry) {
        encoder->heap[at] = encoder->heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    encoder->heap[at] = entry;
    return BP_OK;
}

static uint64_t pop(bp_encoder *encoder) {
    uint64_t *heap = encoder->heap;
    const uint64_t top = heap[0], entry = heap[--encoder->heap_used];
    const size_t used = encoder->heap_used;
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
static bp_status merge_long(bp_encoder *encoder, uint32_t *tokens, size_t number, size_t *left_over) {
    uint32_t *following = tokens + number, *preceding = following + number;
    const uint32_t end = (uint32_t)number;
    bp_status status = BP_OK;
    encoder->heap_used = 0;
    for (uint32_t i = 0; i < end; i++) {
        following[i] = i + 1;
        preceding[i] = i - 1; /* wraps for the first: no place at all */
        uint32_t rank = i + 1 < end ? merged(encoder, tokens[i], tokens[i + 1]) : NO_ID;
        if (rank != NO_ID && (status = push(encoder, rank, i)) != BP_OK) {
            return status;
        }
    }
    while (encoder->heap_used > 0) {
        const uint64_t entry = pop(encoder);
        const uint32_t rank = (uint32_t)(entry >> 32), place = (uint32_t)entry;
        if (tokens[place] == NO_ID || following[place] == end ||
            merged(encoder, tokens[place], tokens[following[place]]) != rank) {
            continue; /* what stood there has been merged since */
        }
        const uint32_t gone = following[place], after = following[gone];
        tokens[place] = rank;
        tokens[gone] = NO_ID;
        following[place] = after;
        if (after != end) {
            preceding[after] = place;
            uint32_t next = merged(encoder, rank, tokens[after]);
            if (next != NO_ID && (status = push(encoder, next, place)) != BP_OK) {
                return status;
            }
        }
        if (preceding[place] != UINT32_MAX) {
            uint32_t next = merged(encoder, tokens[preceding[place]], rank);
            if (next != NO_ID && (status = push(encoder, next, preceding[place])) != BP_OK) {
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

/* The ids of a chunk, in the encoder's scratch. */
static bp_status merge_chunk(bp_encoder *encoder, const uint8_t *chunk, size_t size,
                             const uint32_t **ids, size_t *number) {
    if (size >= UINT32_MAX / 4) {
        return BP_TOO_LARGE;
    }
    if (3 * size > encoder->scratch_room) {
        uint32_t *scratch = realloc(encoder->scratch, 3 * size * sizeof *scratch);
        if (scratch == NULL) {
            return BP_NO_MEMORY;
        }
        encoder->scratch = scratch;
        encoder->scratch_room = 3 * size;
    }
    for (size_t i = 0; i < size; i++) {
        encoder->scratch[i] = chunk[i];
    }
    *ids = encoder->scratch;
    if (size >= LONG_CHUNK) {
        return merge_long(encoder, encoder->scratch, size, number);
    }
    *number = merge_word(encoder, encoder->scratch, encoder->scratch + size, size);
    return BP_OK;
}

/* ---- remembering ---------------------------------------------------------------------------- */

static void forget(bp_encoder *encoder) {
    memset(encoder->slots, 0, (encoder->mask + 1) * sizeof *encoder->slots);
    memset(encoder->longs, 0, (encoder->long_mask + 1) * sizeof *encoder->longs);
    encoder->used = encoder->long_used = 0;
    encoder->arena_used = encoder->texts_used = 0;
}

/* Room for one more entry in both tables and the arenas; what is remembered may be forgotten. */
static bp_status make_room(bp_encoder *encoder) {
    if (encoder->arena_used * sizeof(uint32_t) + encoder->texts_used > MOST_ARENA ||
        (is_full(encoder->used, encoder->mask) && encoder->mask + 1 >= MOST_SLOTS) ||
        (is_full(encoder->long_used, encoder->long_mask) &&
         encoder->long_mask + 1 >= MOST_LONG_SLOTS)) {
        forget(encoder);
    }
    if (is_full(encoder->used, encoder->mask)) {
        const size_t mask = encoder->mask * 2 + 1;
        slot *slots = calloc(mask + 1, sizeof *slots);
        if (slots == NULL) {
            return BP_NO_MEMORY;
        }
        for (size_t i = 0; i <= encoder->mask; i++) {
            if (encoder->slots[i].high != 0) {
                size_t place = bp_hash_middle(encoder->slots[i].low, encoder->slots[i].high) & mask;
                while (slots[place].high != 0) {
                    place = (place + 1) & mask;
                }
                slots[place] = encoder->slots[i];
            }
        }
        free(encoder->slots);
        encoder->slots = slots;
        encoder->mask = mask;
    }
    if (is_full(encoder->long_used, encoder->long_mask)) {
        const size_t mask = encoder->long_mask * 2 + 1;
        long_slot *longs = calloc(mask + 1, sizeof *longs);
        if (longs == NULL) {
            return BP_NO_MEMORY;
        }
        for (size_t i = 0; i <= encoder->long_mask; i++) {
            if (encoder->longs[i].size != 0) {
                size_t place = bp_long_place(encoder->longs[i].hash) & mask;
                while (longs[place].size != 0) {
                    place = (place + 1) & mask;
                }
                longs[place] = encoder->longs[i];
            }
        }
        free(encoder->longs);
        encoder->longs = longs;
        encoder->long_mask = mask;
    }
    return BP_OK;
}

static bp_status keep_ids(bp_encoder *encoder, const uint32_t *ids, size_t number, uint32_t *offset) {
    if (encoder->arena_used + number > encoder->arena_room) {
        size_t room = 2 * (encoder->arena_used + number) + 1024;
        uint32_t *arena = realloc(encoder->arena, room * sizeof *arena);
        if (arena == NULL) {
            return BP_NO_MEMORY;
        }
        encoder->arena = arena;
        encoder->arena_room = room;
    }
    memcpy(encoder->arena + encoder->arena_used, ids, number * sizeof *ids);
    *offset = (uint32_t)encoder->arena_used;
    encoder->arena_used += number;
    return BP_OK;
}

static bp_status keep_text(bp_encoder *encoder, const uint8_t *text, size_t size, uint32_t *offset) {
    if (encoder->texts_used + size > encoder->texts_room) {
        size_t room = 2 * (encoder->texts_used + size) + 1024;
        uint8_t *texts = realloc(encoder->texts, room);
        if (texts == NULL) {
            return BP_NO_MEMORY;
        }
        encoder->texts = texts;
        encoder->texts_room = room;
    }
    memcpy(encoder->texts + encoder->texts_used, text, size);
    *offset = (uint32_t)encoder->texts_used;
    encoder->texts_used += size;
    return BP_OK;
}

/* ---- one chunk ------------------------------------------------------------------------------ */

typedef struct {
    uint8_t *at; /* where the next id goes */
    size_t width;
} output;

static void write_ids(output *out, const uint32_t *ids, size_t number) {
    if (out->width == 4) {
        memcpy(out->at, ids, number * sizeof *ids);
    } else {
        for (size_t i = 0; i < number; i++) {
            const uint16_t id = (uint16_t)ids[i];
            memcpy(out->at + 2 * i, &id, 2);
        }
    }
    out->at += number * out->width;
}

/* Writes a slot's ids at `at` and returns where the next goes. Of the seven, and one more, those too
   many are written over by what comes next: BP_SLACK leaves room for the last. */
static inline uint8_t *write_slot(const bp_encoder *encoder, uint8_t *at, size_t width,
                                  const slot *found) {
    if (found->number == IN_ARENA) {
        uint32_t offset;
        output out = {at, width};
        memcpy(&offset, found->ids, sizeof offset);
        write_ids(&out, encoder->arena + offset, found->ids[2]);
        return out.at;
    }
    if (width == 2) {
        memcpy(at, found->ids, 16);
    } else {
        uint32_t ids[SLOT_IDS + 1];
        for (size_t i = 0; i < SLOT_IDS; i++) {
            ids[i] = found->ids[i];
        }
        ids[SLOT_IDS] = 0;
        memcpy(at, ids, sizeof ids);
    }
    return at + width * found->number;
}

/* A chunk of at most fifteen bytes that is not in the table. */
static bp_status encode_new(bp_encoder *encoder, output *out, const uint8_t *chunk, size_t size,
                            uint64_t low, uint64_t high) {
    const uint32_t *ids;
    size_t number;
    bp_status status = merge_chunk(encoder, chunk, size, &ids, &number);
    if (status != BP_OK || (status = make_room(encoder)) != BP_OK) {
        return status;
    }
    slot made = {low, high, {0}, (uint16_t)number};
    uint32_t highest = 0;
    for (size_t i = 0; i < number; i++) {
        highest = ids[i] > highest ? ids[i] : highest;
    }
    if (number <= SLOT_IDS && highest <= UINT16_MAX) {
        for (size_t i = 0; i < number; i++) {
            made.ids[i] = (uint16_t)ids[i];
        }
    } else {
        uint32_t offset;
        if ((status = keep_ids(encoder, ids, number, &offset)) != BP_OK) {
            return status;
        }
        memcpy(made.ids, &offset, sizeof offset);
        made.ids[2] = (uint16_t)number;
        made.number = IN_ARENA;
    }
    size_t place = bp_hash_middle(low, high) & encoder->mask;
    while (encoder->slots[place].high != 0) {
        place = (place + 1) & encoder->mask;
    }
    encoder->slots[place] = made;
    encoder->used++;
    out->at = write_slot(encoder, out->at, out->width, &made);
    return BP_OK;
}

static bp_status encode_long(bp_encoder *encoder, output *out, const uint8_t *chunk, size_t size,
                             uint64_t hash) {
    const uint32_t *ids;
    size_t number;
    if (size <= LONGEST_REMEMBERED) {
        size_t place = bp_long_place(hash) & encoder->long_mask;
        for (; encoder->longs[place].size != 0; place = (place + 1) & encoder->long_mask) {
            const long_slot *found = &encoder->longs[place];
            if (found->hash == hash && found->size == size &&
                memcmp(encoder->texts + found->text, chunk, size) == 0) {
                write_ids(out, encoder->arena + found->ids, found->number);
                return BP_OK;
            }
        }
    }
    bp_status status = merge_chunk(encoder, chunk, size, &ids, &number);
    if (status != BP_OK) {
        return status;
    }
    write_ids(out, ids, number);
    if (size > LONGEST_REMEMBERED || (status = make_room(encoder)) != BP_OK) {
        return status;
    }
    long_slot made = {.hash = hash, .size = (uint32_t)size, .number = (uint32_t)number};
    if ((status = keep_text(encoder, chunk, size, &made.text)) != BP_OK ||
        (status = keep_ids(encoder, ids, number, &made.ids)) != BP_OK) {
        return status;
    }
    size_t place = bp_long_place(hash) & encoder->long_mask;
    while (encoder->longs[place].size != 0) {
        place = (place + 1) & encoder->long_mask;
    }
    encoder->longs[place] = made;
    encoder->long_used++;
    return BP_OK;
}

/* ---- a batch -------------------------------------------------------------------------------- */

typedef struct {
    uint32_t starts[BATCH + 128];
    uint64_t low[BATCH_ROOM], high[BATCH_ROOM]; /* high 0: a longer chunk, low is its hash */
    uint32_t hashes[BATCH_ROOM];
} batch;

/* Keys and hashes of a batch; sixteen bytes are readable at every start. */
static void hash_batch(const bp_encoder *encoder, const uint8_t *base, batch *work, size_t found) {
    static const uint64_t low_masks[16] = {
        0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF,
        UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
        UINT64_MAX};
    static const uint64_t high_masks[16] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF,
        0xFFFFFFFFFFFFFF};
    const slot *slots = encoder->slots;
    const size_t mask = encoder->mask;
    for (size_t i = 0; i < found; i++) {
        const uint8_t *chunk = base + work->starts[i];
        const size_t size = work->starts[i + 1] - work->starts[i];
        if (size <= BP_MIDDLE) {
            const uint64_t low = bp_load8(chunk) & low_masks[size];
            const uint64_t high = bp_with_size(bp_load8(chunk + 8) & high_masks[size], size);
            const uint32_t hash = (uint32_t)bp_hash_middle(low, high);
            work->low[i] = low;
            work->high[i] = high;
            work->hashes[i] = hash;
            BP_PREFETCH(&slots[hash & mask]);
        } else {
            work->low[i] = bp_hash_long(chunk, size);
            work->high[i] = 0;
            BP_PREFETCH(&encoder->longs[bp_long_place(work->low[i]) & encoder->long_mask]);
        }
    }
}

/* Written for a constant width: nearly every chunk takes the first way out of this loop. */
static inline bp_status look_up_batch(bp_encoder *encoder, const uint8_t *base, const batch *work,
                                      size_t found, output *out, const size_t width) {
    const slot *slots = encoder->slots;
    size_t mask = encoder->mask;
    uint8_t *at = out->at;
    for (size_t i = 0; i < found; i++) {
        const uint64_t low = work->low[i], high = work->high[i];
        if (high != 0) {
            size_t place = work->hashes[i] & mask;
            while ((slots[place].low ^ low) | (slots[place].high ^ high)) {
                if (slots[place].high == 0) {
                    break;
                }
                place = (place + 1) & mask;
            }
            if (slots[place].high != 0) {
                at = write_slot(encoder, at, width, &slots[place]);
                continue;
            }
        }
        const uint8_t *chunk = base + work->starts[i];
        const size_t size = work->starts[i + 1] - work->starts[i];
        out->at = at;
        bp_status status = high == 0 ? encode_long(encoder, out, chunk, size, low)
                                     : encode_new(encoder, out, chunk, size, low, high);
        if (status != BP_OK) {
            return status;
        }
        at = out->at;
        slots = encoder->slots; /* it may have grown */
        mask = encoder->mask;
    }
    out->at = at;
    return BP_OK;
}

static bp_status encode_batch(bp_encoder *encoder, const uint8_t *base, batch *work, size_t found,
                              output *out) {
    hash_batch(encoder, base, work, found);
    return out->width == 2 ? look_up_batch(encoder, base, work, found, out, 2)
                           : look_up_batch(encoder, base, work, found, out, 4);
}

/* [at, end) of a text, until no chunk is certain any more; `*stopped` is where. */
static bp_status encode_part(bp_encoder *encoder, const uint8_t *at, const uint8_t *end, int last,
                             output *out, const uint8_t **stopped) {
    batch work;
    size_t found;
    do {
        const uint8_t *base = at;
        /* starts are 32 bits: a part is not longer than that */
        const uint8_t *stop = (size_t)(end - at) > UINT32_MAX / 2 ? at + UINT32_MAX / 2 : end;
        at = bp_scan(&encoder->scanner, base, base, stop, last && stop == end, work.starts, BATCH,
                     &found);
        bp_status status = encode_batch(encoder, base, &work, found, out);
        if (status != BP_OK) {
            return status;
        }
    } while (found > 0 && at < end);
    *stopped = at;
    return BP_OK;
}

static bp_status check_room(const bp_encoder *encoder, size_t size, size_t width, size_t room) {
    if ((width != 2 && width != 4) || (width == 2 && encoder->vocabulary > 1 << 16)) {
        return BP_BAD_INPUT;
    }
    return room < size || room - size < BP_SLACK ? BP_NO_ROOM : BP_OK;
}

bp_status bp_encode(bp_encoder *encoder, const uint8_t *text, size_t size, void *ids, size_t width,
                    size_t room, size_t *written) {
    bp_status status = check_room(encoder, size, width, room);
    output out = {ids, width};
    if (status != BP_OK || size == 0) {
        *written = 0;
        return status;
    }
    if (!encoder->is_cut) {
        const uint32_t *found;
        size_t number;
        status = merge_chunk(encoder, text, size, &found, &number);
        if (status == BP_OK) {
            write_ids(&out, found, number);
            *written = number;
        }
        return status;
    }
    /* Loads reach past the text, so its end is encoded from a copy with room after it. */
    const uint8_t *at = text, *end = text + size;
    if (size > 2 * BP_PADDING) {
        status = encode_part(encoder, at, end - BP_PADDING, 0, &out, &at);
    }
    const size_t left = (size_t)(end - at);
    uint8_t *tail = status == BP_OK ? malloc(left + BP_PADDING) : NULL;
    if (tail == NULL) {
        return status == BP_OK ? BP_NO_MEMORY : status;
    }
    memcpy(tail, at, left);
    memset(tail + left, 0, BP_PADDING);
    status = encode_part(encoder, tail, tail + left, 1, &out, &at);
    if (status == BP_OK && at != tail + left) {
        status = BP_TOO_LARGE; /* one chunk of gigabytes */
    }
    free(tail);
    *written = (size_t)(out.at - (uint8_t *)ids) / width;
    return status;
}

bp_status bp_encode_chunks(bp_encoder *encoder, const uint8_t *text, size_t size,
                           const uint64_t *ends, size_t chunks, void *ids, size_t width,
                           size_t room, size_t *written) {
    bp_status status = check_room(encoder, size, width, room);
    output out = {ids, width};
    uint64_t start = 0;
    batch *work = status == BP_OK ? malloc(sizeof *work) : NULL;
    if (work == NULL) {
        return status == BP_OK ? BP_NO_MEMORY : status;
    }
    for (size_t i = 0; i < chunks && status == BP_OK; i++) {
        const uint64_t end = ends[i];
        if (end <= start || end > size || end - start > UINT32_MAX / 4) {
            status = BP_BAD_INPUT;
            break;
        }
        const size_t length = (size_t)(end - start);
        if (length <= BP_MIDDLE) {
            uint8_t padded[BP_MIDDLE + 1 + 8] = {0};
            memcpy(padded, text + start, length);
            work->starts[0] = 0;
            work->starts[1] = (uint32_t)length;
            status = encode_batch(encoder, padded, work, 1, &out);
        } else {
            const uint8_t *chunk = text + start;
            status = encode_long(encoder, &out, chunk, length, bp_hash_long(chunk, length));
        }
        start = end;
    }
    free(work);
    if (status == BP_OK && start != size) {
        status = BP_BAD_INPUT;
    }
    *written = (size_t)(out.at - (uint8_t *)ids) / width;
    return status;
}

/* ---- an encoder ----------------------------------------------------------------------------- */

bp_status bp_encoder_new(const uint32_t *pairs, size_t merges, bp_encoder **made) {
    if (merges > UINT32_MAX / 2 - 256) {
        return BP_TOO_LARGE;
    }
    bp_encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder == NULL) {
        return BP_NO_MEMORY;
    }
    size_t room = 1024;
    while (room < 2 * merges) {
        room *= 2;
    }
    encoder->vocabulary = 256 + merges;
    encoder->pair_mask = room - 1;
    encoder->mask = FIRST_SLOTS - 1;
    encoder->long_mask = FIRST_SLOTS / 8 - 1;
    encoder->bytes = malloc(65536 * sizeof *encoder->bytes);
    encoder->pairs = malloc(room * sizeof *encoder->pairs);
    encoder->slots = calloc(FIRST_SLOTS, sizeof *encoder->slots);
    encoder->longs = calloc(FIRST_SLOTS / 8, sizeof *encoder->longs);
    bp_status status = BP_NO_MEMORY;
    if (encoder->bytes != NULL && encoder->pairs != NULL && encoder->slots != NULL &&
        encoder->longs != NULL) {
        memset(encoder->bytes, 0xFF, 65536 * sizeof *encoder->bytes);
        memset(encoder->pairs, 0xFF, room * sizeof *encoder->pairs);
        status = add_pairs(encoder, pairs, merges);
    }
    if (status != BP_OK) {
        bp_encoder_free(encoder);
        return status;
    }
    *made = encoder;
    return BP_OK;
}

bp_status bp_encoder_cut_by(bp_encoder *encoder, bp_pattern pattern, const bp_range *ranges,
                            size_t count) {
    bp_scanner_free(&encoder->scanner);
    bp_status status = bp_scanner_init(&encoder->scanner, pattern, ranges, count);
    encoder->is_cut = status == BP_OK;
    return status;
}

size_t bp_encoder_remembers(const bp_encoder *encoder) {
    return encoder->used + encoder->long_used;
}

void bp_encoder_free(bp_encoder *encoder) {
    if (encoder != NULL) {
        free(encoder->bytes);
        free(encoder->pairs);
        free(encoder->slots);
        free(encoder->longs);
        free(encoder->texts);
        free(encoder->arena);
        bp_scanner_free(&encoder->scanner);
        free(encoder->scratch);
        free(encoder->heap);
        free(encoder);
    }
}
