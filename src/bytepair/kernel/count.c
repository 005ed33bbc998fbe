/* Counting chunks.

   The order in which chunks are counted is free, so they are taken a batch at a time: first the key
   and the hash of each, with a prefetch of its slot, then the look-ups. Chunks live in three tables
   by length, since nine of ten have at most seven bytes: those are a key of eight bytes with the
   length in its top byte, those up to fifteen one of sixteen bytes, and only longer ones have their
   bytes elsewhere. A slot with no length is empty; a table is grown when five of eight are taken. */
#include "keys.h"
#include "pages.h"
#include "scan.h"

#include <stdlib.h>
#include <string.h>

#define BATCH (BP_TINY ? 8 : 1024) /* a scan may find 63 more: the rest of a window */
#define BATCH_ROOM (BATCH + 64)
#define SCAN_BUFFER (BP_TINY ? 160u : 256u << 10) /* stays in the second-level cache */
#define FIRST_SLOTS (BP_TINY ? 8u : 4096u)

typedef struct {
    uint64_t key, count;
} short_slot;

typedef struct {
    uint64_t low, high, count;
} middle_slot;

typedef struct {
    uint64_t hash, count;
    size_t offset, size; /* in the arena; size 0 is empty */
} long_slot;

struct bp_counter {
    const bp_scanner *scanner;
    short_slot *shorts;
    middle_slot *middles;
    long_slot *longs;
    size_t short_mask, middle_mask, long_mask;
    size_t short_used, middle_used, long_used;
    uint8_t *arena;
    size_t arena_used, arena_room;
    uint8_t *text; /* what is not counted yet, with BP_PADDING bytes after it */
    size_t text_used, text_room;
};

/* ---- tables --------------------------------------------------------------------------------- */

static inline int is_full(size_t used, size_t mask) {
    return used * 8 > mask * 5;
}

static bp_status grow_shorts(bp_counter *counter) {
    size_t mask = counter->short_mask * 2 + 1;
    short_slot *slots = bp_new_table(mask + 1, sizeof *slots);
    if (slots == NULL) {
        return BP_NO_MEMORY;
    }
    for (size_t i = 0; i <= counter->short_mask; i++) {
        if (counter->shorts[i].key != 0) {
            size_t place = bp_hash_short(counter->shorts[i].key) & mask;
            while (slots[place].key != 0) {
                place = (place + 1) & mask;
            }
            slots[place] = counter->shorts[i];
        }
    }
    free(counter->shorts);
    counter->shorts = slots;
    counter->short_mask = mask;
    return BP_OK;
}

static bp_status grow_middles(bp_counter *counter) {
    size_t mask = counter->middle_mask * 2 + 1;
    middle_slot *slots = bp_new_table(mask + 1, sizeof *slots);
    if (slots == NULL) {
        return BP_NO_MEMORY;
    }
    for (size_t i = 0; i <= counter->middle_mask; i++) {
        const middle_slot *slot = &counter->middles[i];
        if (slot->high != 0) {
            size_t place = bp_hash_middle(slot->low, slot->high) & mask;
            while (slots[place].high != 0) {
                place = (place + 1) & mask;
            }
            slots[place] = *slot;
        }
    }
    free(counter->middles);
    counter->middles = slots;
    counter->middle_mask = mask;
    return BP_OK;
}

static bp_status grow_longs(bp_counter *counter) {
    size_t mask = counter->long_mask * 2 + 1;
    long_slot *slots = bp_new_table(mask + 1, sizeof *slots);
    if (slots == NULL) {
        return BP_NO_MEMORY;
    }
    for (size_t i = 0; i <= counter->long_mask; i++) {
        if (counter->longs[i].size != 0) {
            size_t place = bp_long_place(counter->longs[i].hash) & mask;
            while (slots[place].size != 0) {
                place = (place + 1) & mask;
            }
            slots[place] = counter->longs[i];
        }
    }
    free(counter->longs);
    counter->longs = slots;
    counter->long_mask = mask;
    return BP_OK;
}

/* Tables are grown before they are full, so there is always an empty slot to end a search. */

static inline bp_status add_short(bp_counter *counter, uint64_t key, uint64_t times) {
    size_t place = bp_hash_short(key) & counter->short_mask;
    while (counter->shorts[place].key != key) {
        if (counter->shorts[place].key == 0) {
            if (is_full(counter->short_used + 1, counter->short_mask)) {
                bp_status status = grow_shorts(counter);
                return status != BP_OK ? status : add_short(counter, key, times);
            }
            counter->shorts[place].key = key;
            counter->short_used++;
            break;
        }
        place = (place + 1) & counter->short_mask;
    }
    counter->shorts[place].count += times;
    return BP_OK;
}

static inline bp_status add_middle(bp_counter *counter, uint64_t low, uint64_t high,
                                   uint64_t times) {
    size_t place = bp_hash_middle(low, high) & counter->middle_mask;
    middle_slot *slot;
    while (slot = &counter->middles[place], slot->high != high || slot->low != low) {
        if (slot->high == 0) {
            if (is_full(counter->middle_used + 1, counter->middle_mask)) {
                bp_status status = grow_middles(counter);
                return status != BP_OK ? status : add_middle(counter, low, high, times);
            }
            slot->low = low;
            slot->high = high;
            counter->middle_used++;
            break;
        }
        place = (place + 1) & counter->middle_mask;
    }
    slot->count += times;
    return BP_OK;
}

static bp_status keep_bytes(bp_counter *counter, const uint8_t *bytes, size_t size) {
    if (size > counter->arena_room - counter->arena_used) {
        size_t room = counter->arena_used + size;
        if (room < size || room > SIZE_MAX / 2) {
            return BP_TOO_LARGE;
        }
        room += room / 2;
        uint8_t *arena = realloc(counter->arena, room);
        if (arena == NULL) {
            return BP_NO_MEMORY;
        }
        counter->arena = arena;
        counter->arena_room = room;
    }
    memcpy(counter->arena + counter->arena_used, bytes, size);
    counter->arena_used += size;
    return BP_OK;
}

static bp_status add_long(bp_counter *counter, const uint8_t *chunk, size_t size, uint64_t hash,
                          uint64_t times) {
    size_t place = bp_long_place(hash) & counter->long_mask;
    for (;; place = (place + 1) & counter->long_mask) {
        long_slot *slot = &counter->longs[place];
        if (slot->hash == hash && slot->size == size &&
            memcmp(counter->arena + slot->offset, chunk, size) == 0) {
            slot->count += times;
            return BP_OK;
        }
        if (slot->size == 0) {
            bp_status status = BP_OK;
            if (is_full(counter->long_used + 1, counter->long_mask)) {
                status = grow_longs(counter);
                return status != BP_OK ? status : add_long(counter, chunk, size, hash, times);
            }
            size_t offset = counter->arena_used;
            status = keep_bytes(counter, chunk, size);
            if (status == BP_OK) {
                *slot = (long_slot){hash, times, offset, size};
                counter->long_used++;
            }
            return status;
        }
    }
}

bp_status bp_counter_add(bp_counter *counter, const uint8_t *chunk, size_t size, uint64_t times) {
    uint8_t padded[16] = {0};
    if (size == 0) {
        return BP_BAD_INPUT;
    }
    if (size > BP_MIDDLE) {
        return add_long(counter, chunk, size, bp_hash_long(chunk, size), times);
    }
    memcpy(padded, chunk, size);
    uint64_t low = bp_load8(padded);
    if (size <= BP_SHORT) {
        return add_short(counter, bp_with_size(low, size), times);
    }
    return add_middle(counter, low, bp_with_size(bp_load8(padded + 8), size), times);
}

/* ---- a batch -------------------------------------------------------------------------------- */

typedef struct {
    uint32_t starts[BATCH + 128];
    uint64_t keys[BATCH_ROOM];   /* of the short ones */
    uint32_t others[BATCH_ROOM]; /* which are longer */
    uint64_t low[BATCH_ROOM], high[BATCH_ROOM];
} batch;

/* Nine of ten chunks end in this loop, so the table is kept in registers. */
static bp_status count_shorts(bp_counter *counter, const uint64_t *keys, size_t number) {
    short_slot *slots = counter->shorts;
    size_t mask = counter->short_mask;
    for (size_t i = 0; i < number; i++) {
        const uint64_t key = keys[i];
        size_t place = bp_hash_short(key) & mask;
        while (slots[place].key != key && slots[place].key != 0) {
            place = (place + 1) & mask;
        }
        if (slots[place].key == key) {
            slots[place].count++;
            continue;
        }
        bp_status status = add_short(counter, key, 1);
        if (status != BP_OK) {
            return status;
        }
        slots = counter->shorts;
        mask = counter->short_mask;
    }
    return BP_OK;
}

/* Counts the `found` chunks between successive starts; BP_PADDING bytes after them are readable. */
static bp_status count_batch(bp_counter *counter, const uint8_t *base, batch *work, size_t found) {
    size_t shorts = 0, others = 0;
    const short_slot *slots = counter->shorts;
    const size_t mask = counter->short_mask;
    for (size_t i = 0; i < found; i++) {
        size_t start = work->starts[i], size = work->starts[i + 1] - start;
        uint64_t key = bp_with_size(bp_first_bytes(bp_load8(base + start), size), size);
        work->keys[shorts] = key; /* overwritten by the next if this one is longer */
        work->others[others] = (uint32_t)i;
        BP_PREFETCH(&slots[bp_hash_short(key) & mask]);
        int is_short = size <= BP_SHORT;
        shorts += (size_t)is_short;
        others += (size_t)!is_short;
    }
    bp_status status = count_shorts(counter, work->keys, shorts);
    if (status != BP_OK) {
        return status;
    }
    for (size_t i = 0; i < others; i++) {
        const uint8_t *chunk = base + work->starts[work->others[i]];
        size_t size = work->starts[work->others[i] + 1] - work->starts[work->others[i]];
        if (size <= BP_MIDDLE) {
            work->low[i] = bp_load8(chunk);
            work->high[i] = bp_with_size(bp_first_bytes(bp_load8(chunk + 8), size - 8), size);
            BP_PREFETCH(
                &counter->middles[bp_hash_middle(work->low[i], work->high[i]) & counter->middle_mask]);
        } else {
            work->low[i] = bp_hash_long(chunk, size);
            work->high[i] = 0;
            BP_PREFETCH(&counter->longs[bp_long_place(work->low[i]) & counter->long_mask]);
        }
    }
    for (size_t i = 0; i < others; i++) {
        const uint8_t *chunk = base + work->starts[work->others[i]];
        size_t size = work->starts[work->others[i] + 1] - work->starts[work->others[i]];
        status = work->high[i] != 0
                     ? add_middle(counter, work->low[i], work->high[i], 1)
                     : add_long(counter, chunk, size, work->low[i], 1);
        if (status != BP_OK) {
            return status;
        }
    }
    return BP_OK;
}

/* Counts what is certain of the text in the buffer, and moves the rest to its front. */
static bp_status count_buffer(bp_counter *counter, int last) {
    batch work;
    const uint8_t *at = counter->text, *end = counter->text + counter->text_used;
    size_t found;
    memset(counter->text + counter->text_used, 0, BP_PADDING);
    do {
        at = bp_scan(counter->scanner, counter->text, at, end, last, work.starts, BATCH, &found);
        bp_status status = count_batch(counter, counter->text, &work, found);
        if (status != BP_OK) {
            return status;
        }
    } while (found >= BATCH || (last && at < end));
    counter->text_used = (size_t)(end - at);
    memmove(counter->text, at, counter->text_used);
    return BP_OK;
}

bp_status bp_counter_feed(bp_counter *counter, const uint8_t *text, size_t size, int last) {
    while (size > 0 || last) {
        if (counter->text_used == counter->text_room) { /* one chunk fills it: make it larger */
            if (counter->text_room >= UINT32_MAX / 2) { /* starts are 32 bits */
                return BP_TOO_LARGE;
            }
            uint8_t *larger = realloc(counter->text, 2 * counter->text_room + BP_PADDING);
            if (larger == NULL) {
                return BP_NO_MEMORY;
            }
            counter->text = larger;
            counter->text_room *= 2;
        }
        size_t room = counter->text_room - counter->text_used;
        size_t taken = size < room ? size : room;
        if (taken > 0) {
            memcpy(counter->text + counter->text_used, text, taken);
        }
        counter->text_used += taken;
        text += taken;
        size -= taken;
        int is_end = last && size == 0;
        if (is_end || counter->text_used == counter->text_room) {
            bp_status status = count_buffer(counter, is_end);
            if (status != BP_OK) {
                return status;
            }
        }
        if (is_end) {
            break;
        }
    }
    return BP_OK;
}

bp_status bp_counter_feed_texts(bp_counter *counter, const uint8_t *text, size_t size,
                                const uint64_t *ends, size_t texts) {
    bp_status status = BP_OK;
    uint64_t start = 0;
    for (size_t i = 0; i < texts && status == BP_OK; start = ends[i++]) {
        if (ends[i] < start || ends[i] > size) {
            return BP_BAD_INPUT;
        }
        status = bp_counter_feed(counter, text + start, (size_t)(ends[i] - start), 1);
    }
    return status == BP_OK && start != size ? BP_BAD_INPUT : status;
}

/* ---- a counter ------------------------------------------------------------------------------ */

bp_status bp_counter_new(const bp_scanner *scanner, bp_counter **made) {
    bp_counter *counter = calloc(1, sizeof *counter);
    if (counter == NULL) {
        return BP_NO_MEMORY;
    }
    counter->scanner = scanner;
    counter->shorts = calloc(FIRST_SLOTS, sizeof *counter->shorts);
    counter->middles = calloc(FIRST_SLOTS, sizeof *counter->middles);
    counter->longs = calloc(FIRST_SLOTS / 4, sizeof *counter->longs);
    counter->text = malloc(SCAN_BUFFER + BP_PADDING);
    counter->short_mask = counter->middle_mask = FIRST_SLOTS - 1;
    counter->long_mask = FIRST_SLOTS / 4 - 1;
    counter->text_room = SCAN_BUFFER;
    if (counter->shorts == NULL || counter->middles == NULL || counter->longs == NULL ||
        counter->text == NULL) {
        bp_counter_free(counter);
        return BP_NO_MEMORY;
    }
    *made = counter;
    return BP_OK;
}

void bp_counter_free(bp_counter *counter) {
    if (counter != NULL) {
        free(counter->shorts);
        free(counter->middles);
        free(counter->longs);
        free(counter->arena);
        free(counter->text);
        free(counter);
    }
}

size_t bp_counter_memory(const bp_counter *counter) {
    return (counter->short_mask + 1) * sizeof *counter->shorts +
           (counter->middle_mask + 1) * sizeof *counter->middles +
           (counter->long_mask + 1) * sizeof *counter->longs + counter->arena_room +
           counter->text_room;
}

void bp_counter_size(const bp_counter *counter, size_t *distinct, size_t *bytes) {
    *distinct = counter->short_used + counter->middle_used + counter->long_used;
    *bytes = counter->arena_used;
    for (size_t i = 0; i <= counter->short_mask; i++) {
        *bytes += (size_t)(counter->shorts[i].key >> 56);
    }
    for (size_t i = 0; i <= counter->middle_mask; i++) {
        *bytes += (size_t)(counter->middles[i].high >> 56);
    }
}

static inline void store8(uint8_t *at, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++) {
        at[i] = (uint8_t)(value >> 8 * i);
    }
}

void bp_counter_take(bp_counter *counter, uint8_t *chunks, uint64_t *ends, uint64_t *counts) {
    size_t end = 0, number = 0;
    for (size_t i = 0; i <= counter->short_mask; i++) {
        const short_slot *slot = &counter->shorts[i];
        if (slot->key != 0) {
            size_t size = (size_t)(slot->key >> 56);
            store8(chunks + end, slot->key, size);
            ends[number] = end += size;
            counts[number++] = slot->count;
        }
    }
    for (size_t i = 0; i <= counter->middle_mask; i++) {
        const middle_slot *slot = &counter->middles[i];
        if (slot->high != 0) {
            size_t size = (size_t)(slot->high >> 56);
            store8(chunks + end, slot->low, 8);
            store8(chunks + end + 8, slot->high, size - 8);
            ends[number] = end += size;
            counts[number++] = slot->count;
        }
    }
    for (size_t i = 0; i <= counter->long_mask; i++) {
        const long_slot *slot = &counter->longs[i];
        if (slot->size != 0) {
            memcpy(chunks + end, counter->arena + slot->offset, slot->size);
            ends[number] = end += slot->size;
            counts[number++] = slot->count;
        }
    }
}

bp_status bp_counter_merge(bp_counter *into, const bp_counter *from) {
    bp_status status = BP_OK;
    for (size_t i = 0; i <= from->short_mask && status == BP_OK; i++) {
        if (from->shorts[i].key != 0) {
            status = add_short(into, from->shorts[i].key, from->shorts[i].count);
        }
    }
    for (size_t i = 0; i <= from->middle_mask && status == BP_OK; i++) {
        const middle_slot *slot = &from->middles[i];
        if (slot->high != 0) {
            status = add_middle(into, slot->low, slot->high, slot->count);
        }
    }
    for (size_t i = 0; i <= from->long_mask && status == BP_OK; i++) {
        const long_slot *slot = &from->longs[i];
        if (slot->size != 0) {
            status = add_long(into, from->arena + slot->offset, slot->size, slot->hash,
                              slot->count);
        }
    }
    return status;
}
