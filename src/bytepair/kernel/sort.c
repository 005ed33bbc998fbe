/* Chunk counts in the order of their bytes, as they are stored. */
#include "bytepair.h"
#include "order.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t first; /* eight bytes, the first highest, zeros after the end */
    const uint8_t *chunk;
    size_t size;
    uint64_t count;
} entry;

static int compare(const void *one, const void *other) {
    const entry *a = one, *b = other;
    if (a->first != b->first) {
        return a->first < b->first ? -1 : 1;
    }
    return bp_compare_chunks(a->chunk, a->size, b->chunk, b->size);
}

bp_status bp_counts_sort(const uint8_t *chunks, const uint64_t *ends, const uint64_t *counts,
                         size_t distinct, uint8_t *sorted_chunks, uint64_t *sorted_ends,
                         uint64_t *sorted_counts) {
    if (distinct == 0) {
        return BP_OK;
    }
    entry *entries = distinct > SIZE_MAX / sizeof *entries
                         ? NULL
                         : malloc(distinct * sizeof *entries);
    if (entries == NULL) {
        return BP_NO_MEMORY;
    }
    uint64_t start = 0;
    for (size_t i = 0; i < distinct; start = ends[i++]) {
        if (ends[i] < start || ends[i] > ends[distinct - 1]) { /* the last is the number of bytes */
            free(entries);
            return BP_BAD_INPUT;
        }
        const uint8_t *chunk = chunks + start;
        const size_t size = (size_t)(ends[i] - start);
        entries[i] = (entry){bp_leading_bytes(chunk, size), chunk, size, counts[i]};
    }
    qsort(entries, distinct, sizeof *entries, compare);
    uint64_t end = 0;
    for (size_t i = 0; i < distinct; i++) {
        memcpy(sorted_chunks + end, entries[i].chunk, entries[i].size);
        sorted_ends[i] = end += entries[i].size;
        sorted_counts[i] = entries[i].count;
    }
    free(entries);
    return BP_OK;
}

int bp_counts_are_sorted(const uint8_t *chunks, size_t size, const uint64_t *ends,
                         const uint64_t *counts, size_t distinct) {
    const uint8_t *before = chunks;
    size_t before_size = 0;
    uint64_t start = 0;
    for (size_t i = 0; i < distinct; i++) {
        if (ends[i] <= start || ends[i] > size || counts[i] == 0) {
            return 0;
        }
        const uint8_t *chunk = chunks + start;
        const size_t length = (size_t)(ends[i] - start);
        if (bp_compare_chunks(before, before_size, chunk, length) >= 0) {
            return 0;
        }
        before = chunk;
        before_size = length;
        start = ends[i];
    }
    return start == size;
}
