/* Encoding: from text to ids.

   Words repeat, so nearly every chunk has been encoded before. Chunks up to fifteen bytes are looked
   up in a table whose slots are half a cache line: a key of sixteen bytes, and up to seven ids of two
   bytes with their number, which are stored whole and the place advanced by the number. A batch is
   hashed and prefetched before it is looked up. Longer chunks, and results that do not fit a slot,
   have theirs in an arena. Both tables are emptied when they reach their bound, so the memory of an
   encoder does not grow with the text. A chunk that is not there is merged (merge.c). */
#include "keys.h"
#include "merge.h"
#include "pages.h"
#include "scan.h"

#include <stdlib.h>
#include <string.h>

#define BATCH (BP_TINY ? 8 : 512)
#define BATCH_ROOM (BATCH + 64)
#define FIRST_SLOTS (BP_TINY ? 16u : 1u << 12)
#define MOST_SLOTS (BP_TINY ? 64u : 1u << 20) /* 32 MB; five of eight are used at most */
#define MOST_LONG_SLOTS (BP_TINY ? 8u : 1u << 19)
#define MOST_ARENA (BP_TINY ? 4096u : 64u << 20) /* bytes of text and of ids */
#define LONGEST_REMEMBERED 256u
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

struct bp_encoder {
    const bp_scanner *scanner; /* NULL: a text is one chunk */
    bp_merger merger;

    slot *slots;
    size_t mask, used;
    long_slot *longs;
    size_t long_mask, long_used;
    uint8_t *texts;
    size_t texts_used, texts_room;
    uint32_t *arena;
    size_t arena_used, arena_room;
};

static inline int is_full(size_t used, size_t mask) {
    return used * 8 > mask * 5;
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
        slot *slots = bp_new_table(mask + 1, sizeof *slots);
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
        long_slot *longs = bp_new_table(mask + 1, sizeof *longs);
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
    bp_status status = bp_merge(&encoder->merger, chunk, size, &ids, &number);
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
    bp_status status = bp_merge(&encoder->merger, chunk, size, &ids, &number);
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
        at = bp_scan(encoder->scanner, base, base, stop, last && stop == end, work.starts, BATCH,
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
    if ((width != 2 && width != 4) || (width == 2 && encoder->merger.vocabulary > 1 << 16)) {
        return BP_BAD_INPUT;
    }
    return room < size || room - size < BP_SLACK ? BP_NO_ROOM : BP_OK;
}

/* One text, after whose end `readable` bytes may be read. */
static bp_status encode_text(bp_encoder *encoder, const uint8_t *text, size_t size, size_t readable,
                             output *out) {
    if (size == 0) {
        return BP_OK;
    }
    if (encoder->scanner == NULL) {
        const uint32_t *ids;
        size_t number;
        bp_status status = bp_merge(&encoder->merger, text, size, &ids, &number);
        if (status == BP_OK) {
            write_ids(out, ids, number);
        }
        return status;
    }
    const uint8_t *at = text, *end = text + size;
    bp_status status = BP_OK;
    if (readable >= BP_PADDING) {
        status = encode_part(encoder, at, end, 1, out, &at);
        return status == BP_OK && at != end ? BP_TOO_LARGE : status; /* one chunk of gigabytes */
    }
    /* Loads reach past the text, so its end is encoded from a copy with room after it. */
    if (size > 2 * BP_PADDING) {
        status = encode_part(encoder, at, end - BP_PADDING, 0, out, &at);
        if (status != BP_OK) {
            return status;
        }
    }
    uint8_t few[6 * BP_PADDING];
    const size_t left = (size_t)(end - at);
    uint8_t *tail = left + BP_PADDING <= sizeof few ? few : malloc(left + BP_PADDING);
    if (tail == NULL) {
        return BP_NO_MEMORY;
    }
    memcpy(tail, at, left);
    memset(tail + left, 0, BP_PADDING);
    status = encode_part(encoder, tail, tail + left, 1, out, &at);
    if (status == BP_OK && at != tail + left) {
        status = BP_TOO_LARGE;
    }
    if (tail != few) {
        free(tail);
    }
    return status;
}

static size_t ids_written(const output *out, const void *ids) {
    return (size_t)(out->at - (const uint8_t *)ids) / out->width;
}

bp_status bp_encode(bp_encoder *encoder, const uint8_t *text, size_t size, void *ids, size_t width,
                    size_t room, size_t *written) {
    output out = {ids, width};
    bp_status status = check_room(encoder, size, width, room);
    if (status == BP_OK) {
        status = encode_text(encoder, text, size, 0, &out);
    }
    if (status == BP_OK) {
        *written = ids_written(&out, ids);
    }
    return status;
}

bp_status bp_encode_texts(bp_encoder *encoder, const uint8_t *text, size_t size,
                          const uint64_t *ends, size_t texts, void *ids, size_t width, size_t room,
                          uint64_t *id_ends) {
    output out = {ids, width};
    bp_status status = check_room(encoder, size, width, room);
    uint64_t start = 0;
    for (size_t i = 0; i < texts && status == BP_OK; start = ends[i++]) {
        if (ends[i] < start || ends[i] > size) {
            return BP_BAD_INPUT;
        }
        status = encode_text(encoder, text + start, (size_t)(ends[i] - start),
                             (size_t)(size - ends[i]), &out);
        id_ends[i] = ids_written(&out, ids);
    }
    return status == BP_OK && start != size ? BP_BAD_INPUT : status;
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
    if (status == BP_OK) {
        *written = ids_written(&out, ids);
    }
    return status;
}

/* ---- an encoder ----------------------------------------------------------------------------- */

bp_status bp_encoder_new(const bp_scanner *scanner, const uint32_t *pairs, size_t merges,
                         bp_encoder **made) {
    bp_encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder == NULL) {
        return BP_NO_MEMORY;
    }
    encoder->scanner = scanner;
    encoder->mask = FIRST_SLOTS - 1;
    encoder->long_mask = FIRST_SLOTS / 8 - 1;
    encoder->slots = calloc(FIRST_SLOTS, sizeof *encoder->slots);
    encoder->longs = calloc(FIRST_SLOTS / 8, sizeof *encoder->longs);
    bp_status status = encoder->slots == NULL || encoder->longs == NULL
                           ? BP_NO_MEMORY
                           : bp_merger_init(&encoder->merger, pairs, merges);
    if (status != BP_OK) {
        bp_encoder_free(encoder);
        return status;
    }
    *made = encoder;
    return BP_OK;
}

size_t bp_encoder_remembers(const bp_encoder *encoder) {
    return encoder->used + encoder->long_used;
}

void bp_encoder_free(bp_encoder *encoder) {
    if (encoder != NULL) {
        bp_merger_release(&encoder->merger);
        free(encoder->slots);
        free(encoder->longs);
        free(encoder->texts);
        free(encoder->arena);
        free(encoder);
    }
}
