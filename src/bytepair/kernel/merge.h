/* The merges of a tokenizer, and the ids of one chunk. Internal to the kernel. */
#ifndef BYTEPAIR_MERGE_H
#define BYTEPAIR_MERGE_H

#include "bytepair.h"

typedef struct {
    uint32_t tag, id; /* BP_NO_ID is empty */
} bp_pair_slot;

#define BP_NO_ID UINT32_MAX

typedef struct {
    uint32_t *bytes; /* the id that two bytes make, or BP_NO_ID: 64 K entries */
    uint32_t *pairs; /* left and right of each merge */
    bp_pair_slot *slots;
    size_t slot_mask;
    size_t vocabulary; /* without special tokens */

    uint32_t *scratch;
    size_t scratch_room;
    uint64_t *heap;
    size_t heap_room, heap_used;
} bp_merger;

/* `merger` is all zero; after a failure it can be released. */
bp_status bp_merger_init(bp_merger *merger, const uint32_t *pairs, size_t merges);
void bp_merger_release(bp_merger *merger);

/* The ids of a chunk of at least one byte, valid until the next call. */
bp_status bp_merge(bp_merger *merger, const uint8_t *chunk, size_t size, const uint32_t **ids,
                   size_t *number);

#endif
