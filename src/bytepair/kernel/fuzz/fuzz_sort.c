/* Sorted counts are the same chunks and counts, in order; what is not in order, or contradicts itself,
   is found without reading outside of it. When the allocation fails, nothing leaks.

   An input is: flags, then chunks, each its length, its count and its bytes; then, if they are to be
   so, ends that contradict each other. */
#include "fuzz.h"

#include "../sort.c"

enum { FEW_LETTERS = 1, ANY_ENDS = 2 };
enum { MOST_CHUNKS = 64, MOST_BYTES = 2048 };

typedef struct {
    uint8_t *chunks;
    uint64_t *ends, *counts;
    size_t distinct, size;
} packed;

static packed pack(const uint8_t *chunks, const uint64_t *ends, const uint64_t *counts,
                   size_t distinct, size_t size) {
    return (packed){exact(chunks, size), exact(ends, 8 * distinct), exact(counts, 8 * distinct),
                    distinct, size};
}

static void unpack(packed *given) {
    discard(given->chunks);
    discard(given->ends);
    discard(given->counts);
}

/* Before, the same or after, in the order of bytes. */
static int order_of(const packed *given, size_t one, size_t other) {
    const size_t places[2] = {one, other};
    uint64_t begins[2], sizes[2];
    for (int i = 0; i < 2; i++) {
        begins[i] = places[i] == 0 ? 0 : given->ends[places[i] - 1];
        sizes[i] = given->ends[places[i]] - begins[i];
    }
    for (uint64_t i = 0; i < sizes[0] && i < sizes[1]; i++) {
        const uint8_t a = given->chunks[begins[0] + i], b = given->chunks[begins[1] + i];
        if (a != b) {
            return a < b ? -1 : 1;
        }
    }
    return sizes[0] == sizes[1] ? 0 : sizes[0] < sizes[1] ? -1 : 1;
}

static bool are_sorted(const packed *given) {
    uint64_t start = 0;
    for (size_t i = 0; i < given->distinct; start = given->ends[i++]) {
        if (given->ends[i] <= start || given->ends[i] > given->size || given->counts[i] == 0 ||
            (i > 0 && order_of(given, i - 1, i) >= 0)) {
            return false;
        }
    }
    return start == given->size;
}

/* How often a chunk of `of` stands in `given` with the same count. */
static size_t times_in(const packed *given, const packed *of, size_t chunk) {
    const uint64_t begin = chunk == 0 ? 0 : of->ends[chunk - 1], size = of->ends[chunk] - begin;
    size_t times = 0;
    uint64_t start = 0;
    for (size_t i = 0; i < given->distinct; start = given->ends[i++]) {
        times += given->ends[i] - start == size && given->counts[i] == of->counts[chunk] &&
                 memcmp(given->chunks + start, of->chunks + begin, (size_t)size) == 0;
    }
    return times;
}

static bp_status sort(const packed *given, packed *sorted) {
    return bp_counts_sort(given->chunks, given->ends, given->counts, given->distinct,
                          sorted->chunks, sorted->ends, sorted->counts);
}

static void check_sort(const packed *given) {
    packed sorted = pack(NULL, NULL, NULL, given->distinct, given->size);
    allocations = 0;
    failing = 1;
    CHECK(sort(given, &sorted) == (given->distinct > 0 ? BP_NO_MEMORY : BP_OK));
    failing = 0;
    CHECK(sort(given, &sorted) == BP_OK);
    CHECK(held == 0);
    for (size_t i = 0; i < given->distinct; i++) {
        CHECK(i == 0 || order_of(&sorted, i - 1, i) <= 0);
        CHECK(times_in(&sorted, given, i) == times_in(given, given, i));
    }
    CHECK(bp_counts_are_sorted(sorted.chunks, sorted.size, sorted.ends, sorted.counts,
                               sorted.distinct) == are_sorted(&sorted));
    unpack(&sorted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t chunks[MOST_BYTES];
    uint64_t ends[MOST_CHUNKS], counts[MOST_CHUNKS];
    size_t distinct = 0, used = 0;
    input in = {data, size};
    const uint64_t flags = take(&in, 1);
    while (in.left > 0 && distinct < MOST_CHUNKS && used < MOST_BYTES) {
        size_t length = take_below(&in, 24);
        counts[distinct] = take(&in, 1);
        for (; length > 0 && in.left > 0 && used < MOST_BYTES; length--) {
            const uint64_t byte = take(&in, 1);
            chunks[used++] = (uint8_t)(flags & FEW_LETTERS ? byte % 3 : byte);
        }
        ends[distinct++] = used;
    }
    packed given = pack(chunks, ends, counts, distinct, used);
    check_sort(&given);
    for (size_t i = 0; flags & ANY_ENDS && i < distinct; i++) {
        const uint64_t change = take(&in, 1) ^ counts[i];
        given.ends[i] += change % 4 == 1 ? change / 4 : change % 4 == 2 ? (uint64_t)0 - change : 0;
    }
    CHECK(bp_counts_are_sorted(given.chunks, given.size, given.ends, given.counts, distinct) ==
          are_sorted(&given));
    uint64_t start = 0;
    bool ascend = true;
    for (size_t i = 0; i < distinct; start = given.ends[i++]) {
        ascend = ascend && given.ends[i] >= start;
    }
    if (!ascend && given.ends[distinct - 1] <= used) { /* the last is the number of bytes */
        CHECK(sort(&given, &given) == BP_BAD_INPUT && held == 0);
    }
    unpack(&given);
    return 0;
}
