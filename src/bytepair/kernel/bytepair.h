/* The compiled core: counting chunks, training and encoding, exactly as the Python core does.

   Plain C11, no Python. Every function that can fail returns a bp_status; after a failure an object
   can still be freed. Sizes are size_t, counts 64 bits. Nothing is locked: one thread at a time may
   use a counter or an encoder, any number a scanner. */
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

/* The named patterns; the first four are one family, with one scanner for ASCII text. */
typedef enum {
    BP_WORDS = 0,
    BP_NOTEBOOK = 1,
    BP_GPT2_ASCII = 2,
    BP_GPT2 = 3,
    BP_CL100K = 4,
    BP_O200K = 5
} bp_pattern;

/* Code points `first` to `last`, inclusive, are of class `klass`: see scan.h. Those in no range are
   of class 0. */
typedef struct {
    uint32_t first, last, klass;
} bp_range;

/* How many of the bytes, from the first, are UTF-8 (table 3-7 of the Unicode Standard): `size` if all
   are. */
size_t bp_valid_utf8(const uint8_t *text, size_t size);

/* Scanning.

   A scanner is a pattern with its classes. It does not change, so threads may share it; it must
   outlive what uses it. Text is UTF-8; of other bytes no more is said than that none outside the text
   is read, that joined chunks are the text again, and that no chunk is empty. */
typedef struct bp_scanner bp_scanner;

bp_status bp_scanner_new(bp_pattern pattern, const bp_range *ranges, size_t count,
                         bp_scanner **scanner);
void bp_scanner_free(bp_scanner *scanner);

/* The length of the longest beginning of `text` after which a chunk begins for certain, whatever
   comes before and after; 0 if there is none. So the parts can be counted or encoded apart. */
size_t bp_safe_cut(const bp_scanner *scanner, const uint8_t *text, size_t size);

/* Counting.

   Text is fed in pieces of any size; `last` ends a document, over whose end no chunk reaches. After
   a failure the counts are of no use. */
typedef struct bp_counter bp_counter;

bp_status bp_counter_new(const bp_scanner *scanner, bp_counter **counter);
void bp_counter_free(bp_counter *counter);
bp_status bp_counter_feed(bp_counter *counter, const uint8_t *text, size_t size, int last);

/* Several documents: text i ends at ends[i], the last at `size`. */
bp_status bp_counter_feed_texts(bp_counter *counter, const uint8_t *text, size_t size,
                                const uint64_t *ends, size_t texts);

/* `times` more of a chunk that was cut elsewhere. */
bp_status bp_counter_add(bp_counter *counter, const uint8_t *chunk, size_t size, uint64_t times);

/* Adds all of `from`. */
bp_status bp_counter_merge(bp_counter *into, const bp_counter *from);

/* How many bytes of memory it has. */
size_t bp_counter_memory(const bp_counter *counter);

/* How many distinct chunks there are, and how many bytes they have together. */
void bp_counter_size(const bp_counter *counter, size_t *distinct, size_t *bytes);

/* Writes the chunks, in no particular order, as bp_train takes them. */
void bp_counter_take(bp_counter *counter, uint8_t *chunks, uint64_t *ends, uint64_t *counts);

/* The same chunks in the order of their bytes; the sorted arrays are as long as the given ones. */
bp_status bp_counts_sort(const uint8_t *chunks, const uint64_t *ends, const uint64_t *counts,
                         size_t distinct, uint8_t *sorted_chunks, uint64_t *sorted_ends,
                         uint64_t *sorted_counts);

/* Whether `size` bytes are that many chunks, none empty, each after the one before, and no count 0. */
int bp_counts_are_sorted(const uint8_t *chunks, size_t size, const uint64_t *ends,
                         const uint64_t *counts, size_t distinct);

/* Merging.

   A run is a sequence of sorted counts of which a window is in memory: chunk i of it, of `number`,
   ends at ends[i] - origin in `chunks`, which has `size` bytes, and occurs counts[i] times. `taken`
   of them have been merged. The window is the run's last if nothing comes after it. */
typedef struct {
    const uint8_t *chunks;
    const uint64_t *ends, *counts;
    size_t size, number, taken;
    uint64_t origin;
    int last;
} bp_run;

/* Where merged counts go: chunk i ends at ends[i] - origin in `chunks`. */
typedef struct {
    uint8_t *chunks;
    uint64_t *ends, *counts;
    size_t size_room, room, size, number;
    uint64_t origin;
} bp_merged;

/* Adds up the counts of runs as far as their windows reach: until one that is not the last has been
   taken, or all are, or there is no room. Appends whole sums only, so it can be called again with
   other windows. BP_NO_ROOM if the next chunk has no room in `into` even if that is empty;
   BP_TOO_LARGE if a sum needs more than 64 bits, BP_BAD_INPUT if a run is not sorted or its ends do
   not fit: `*culprit` is then the run. */
bp_status bp_counts_merge(bp_run *runs, size_t number, bp_merged *into, size_t *culprit);

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

/* Encoding.

   Ids are written `width` bytes each, 2 or 4, in the machine's byte order; with 2 every id of the
   vocabulary is below 65,536. A text of n bytes has at most n ids, and `room` must be at least
   n + BP_SLACK: what lies behind the ids may be written over. An encoder remembers chunks, within a
   bound, so one thread at a time may use it. */
#define BP_SLACK 16

typedef struct bp_encoder bp_encoder;

/* Merge i makes id 256 + i of pairs[2 * i] and pairs[2 * i + 1]. Without a scanner (NULL) a text is
   one chunk. */
bp_status bp_encoder_new(const bp_scanner *scanner, const uint32_t *pairs, size_t merges,
                         bp_encoder **encoder);
void bp_encoder_free(bp_encoder *encoder);

bp_status bp_encode(bp_encoder *encoder, const uint8_t *text, size_t size, void *ids, size_t width,
                    size_t room, size_t *written);

/* Several texts, none of which a chunk leaves: text i ends at ends[i], the last at `size`, and its
   ids at id_ends[i]. */
bp_status bp_encode_texts(bp_encoder *encoder, const uint8_t *text, size_t size,
                          const uint64_t *ends, size_t texts, void *ids, size_t width, size_t room,
                          uint64_t *id_ends);

/* A text cut already: chunk i ends at ends[i], the last at `size`. */
bp_status bp_encode_chunks(bp_encoder *encoder, const uint8_t *text, size_t size,
                           const uint64_t *ends, size_t chunks, void *ids, size_t width,
                           size_t room, size_t *written);

/* How many chunks it remembers. */
size_t bp_encoder_remembers(const bp_encoder *encoder);

#endif
