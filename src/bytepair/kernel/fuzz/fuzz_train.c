/* Training on any bytes: equal to a slow training; nothing leaks or is written when an allocation
   fails, each in turn; what are no counts is refused.

   An input is: flags, merges, min_count, then chunks, each its length, its count and its bytes. */
#include "fuzz.h"

#define TRAIN_TINY 1
#include "../train.c"

enum { MOST_BYTES = 512, MOST_CHUNKS = 128, MOST_MERGES = 255 };
enum { FEW_LETTERS = 1, LARGE_COUNTS = 2, HUGE_COUNTS = 4, RAW = 8, FAILING = 16 };

struct arguments {
    uint8_t *chunks;
    uint64_t *ends, *counts;
    size_t distinct, size;
    uint64_t merges, min_count;
};

struct results {
    uint32_t pairs[2 * MOST_MERGES];
    uint64_t pair_counts[MOST_MERGES], lengths[MOST_MERGES + 1];
    size_t found;
};

/* ---- the slow training: everything is counted again for every merge ---- */

struct window {
    uint64_t key, weight;
};

static int compare_windows(const void *one, const void *other)
{
    const uint64_t a = ((const struct window *)one)->key, b = ((const struct window *)other)->key;
    return (a > b) - (a < b);
}

static struct window best_window(struct window *windows, size_t number)
{
    struct window best = {0, 0};
    qsort(windows, number, sizeof *windows, compare_windows);
    for (size_t i = 0, next; i < number; i = next) {
        struct window sum = {windows[i].key, 0};
        for (next = i; next < number && windows[next].key == sum.key; next++)
            sum.weight += windows[next].weight;
        if (sum.weight > best.weight)
            best = sum;
    }
    return best;
}

static void train_slowly(const struct arguments *given, struct results *results)
{
    uint32_t ids[MOST_BYTES];
    size_t ends[MOST_CHUNKS];
    struct window windows[MOST_BYTES];
    for (size_t i = 0; i < given->size; i++)
        ids[i] = given->chunks[i];
    for (size_t i = 0; i < given->distinct; i++)
        ends[i] = (size_t)given->ends[i];
    memset(results, 0, sizeof *results);
    for (;; results->found++) {
        size_t number = 0, start = 0;
        for (size_t chunk = 0; chunk < given->distinct; start = ends[chunk++]) {
            results->lengths[results->found] += given->counts[chunk] * (ends[chunk] - start);
            for (size_t i = start; i + 1 < ends[chunk]; i++)
                windows[number++] = (struct window){((uint64_t)ids[i] << 32) | ids[i + 1],
                                                    given->counts[chunk]};
        }
        const struct window best = best_window(windows, number);
        if (results->found == given->merges || best.weight < given->min_count)
            return;
        results->pairs[2 * results->found] = (uint32_t)(best.key >> 32);
        results->pairs[2 * results->found + 1] = (uint32_t)best.key;
        results->pair_counts[results->found] = best.weight;
        size_t kept = 0;
        start = 0;
        for (size_t chunk = 0; chunk < given->distinct; chunk++) {
            const size_t end = ends[chunk];
            for (size_t i = start; i < end; i++, kept++) {
                if (i + 1 < end && (((uint64_t)ids[i] << 32) | ids[i + 1]) == best.key) {
                    ids[kept] = 256 + (uint32_t)results->found;
                    i++;
                } else {
                    ids[kept] = ids[i];
                }
            }
            start = end;
            ends[chunk] = kept;
        }
    }
}

/* ---- one input ---- */

static bp_status train(const struct arguments *given, struct results *results)
{
    memset(results, 0xAA, sizeof *results);
    allocations = 0;
    return bp_train(given->chunks, given->ends, given->counts, given->distinct,
                    (size_t)given->merges, given->min_count, results->pairs, results->pair_counts,
                    results->lengths, &results->found);
}

static bp_status expected_status(const struct arguments *given)
{
    uint64_t start = 0, length = 0;
    if (given->min_count == 0 || given->merges > (UINT64_C(1) << 31) - 257)
        return BP_BAD_INPUT;
    for (size_t i = 0; i < given->distinct; i++) {
        uint64_t size = given->ends[i] - start, product;
        if (given->ends[i] <= start || given->counts[i] == 0)
            return BP_BAD_INPUT;
        if (__builtin_mul_overflow(size, given->counts[i], &product)
            || __builtin_add_overflow(length, product, &length))
            return BP_TOO_LARGE;
        start = given->ends[i];
    }
    return BP_OK;
}

static void check(const struct arguments *given, bool is_failing)
{
    static struct results expected, results, untouched;
    memset(&untouched, 0xAA, sizeof untouched);
    failing = 0;
    const bp_status status = train(given, &results);
    CHECK(status == expected_status(given));
    if (status != BP_OK) {
        CHECK(memcmp(&results, &untouched, sizeof results) == 0);
        return;
    }
    train_slowly(given, &expected);
    CHECK(results.found == expected.found);
    CHECK(memcmp(results.pairs, expected.pairs, 2 * sizeof(uint32_t) * results.found) == 0);
    CHECK(memcmp(results.pair_counts, expected.pair_counts, 8 * results.found) == 0);
    CHECK(memcmp(results.lengths, expected.lengths, 8 * (results.found + 1)) == 0);
    const size_t all = is_failing ? allocations : 0;
    for (failing = 1; failing <= all; failing++) {
        CHECK(train(given, &results) == BP_NO_MEMORY);
        CHECK(memcmp(&results, &untouched, sizeof results) == 0);
    }
}

static uint64_t count_of(uint64_t byte, uint64_t flags)
{
    if (flags & HUGE_COUNTS)
        return (byte + 1) << 40;
    return flags & LARGE_COUNTS ? byte * byte * byte + 1 : byte % 8 + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    static uint64_t ends[MOST_CHUNKS], counts[MOST_CHUNKS];
    static uint8_t chunks[MOST_BYTES];
    struct arguments given = {0};
    const uint64_t flags = take(&in, 1);
    given.merges = take(&in, flags & RAW ? 4 : 1);
    given.min_count = take(&in, 1) % 5 + !(flags & RAW);
    while (in.left > 2 && given.distinct < MOST_CHUNKS && given.size < MOST_BYTES) {
        size_t length = (size_t)take(&in, 1) % 48 + 1;
        counts[given.distinct] = take(&in, flags & RAW ? 8 : 1);
        if (!(flags & RAW))
            counts[given.distinct] = count_of(counts[given.distinct], flags);
        for (; length > 0 && in.left > 0 && given.size < MOST_BYTES; length--, given.size++) {
            const uint64_t byte = take(&in, 1);
            chunks[given.size] = (uint8_t)(flags & FEW_LETTERS ? byte % 3 : byte % BYTES);
        }
        ends[given.distinct++] = given.size;
    }
    if (flags & RAW) {  /* nothing holds but the size of the arrays */
        for (size_t i = 0; i < given.distinct && in.left > 0; i++)
            ends[i] = take(&in, 1) % (given.size + 1);
        if (given.merges > MOST_MERGES && given.merges <= INT32_MAX - 256)
            given.merges = MOST_MERGES;
    }
    given.chunks = exact(chunks, given.size);
    given.ends = exact(ends, 8 * given.distinct);
    given.counts = exact(counts, 8 * given.distinct);
    check(&given, flags & FAILING);
    CHECK(held == 0);
    discard(given.chunks);
    discard(given.ends);
    discard(given.counts);
    return 0;
}
