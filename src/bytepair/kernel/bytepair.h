/* The compiled core: counting chunks, training and encoding, exactly as the Python core does.

   Plain C11, no Python. Every function that can fail returns a bp_status; on failure nothing that
   the caller sees has changed, and the object can still be freed. Sizes are size_t, counts 64 bits.
   Objects are not locked: one thread at a time may use a counter; any number may use an encoder's
   tables through encoder objects of their own. */
#ifndef BYTEPAIR_H
#define BYTEPAIR_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    BP_OK = 0,
    BP_NO_MEMORY = 1,
    BP_TOO_LARGE = 2,   /* more ids, bytes or chunks than the format or the machine can hold */
    BP_BAD_INPUT = 3,   /* an argument contradicts another: offsets, ids, an unknown pattern */
    BP_NO_ROOM = 4      /* the caller's buffer is too small */
} bp_status;

/* Training.

   `chunks` holds the distinct chunks' bytes one after the other, chunk i ending at ends[i] (so ends
   ascend strictly, and the last is the number of bytes); counts[i] is how often it occurs.
   Finds up to `merges` merges: the pair with the highest count, of equals the smallest (left,
   right), windows overlapping; stops below `min_count`. Writes pairs[2 * i], pairs[2 * i + 1] and
   pair_counts[i] for each merge i < *found, and lengths[i], the tokens in the text after i merges,
   for i <= *found. The arrays have room for `merges` (lengths: one more). */
bp_status bp_train(const uint8_t *chunks, const uint64_t *ends, const uint64_t *counts,
                   size_t distinct, size_t merges, uint64_t min_count, uint32_t *pairs,
                   uint64_t *pair_counts, uint64_t *lengths, size_t *found);

#endif
