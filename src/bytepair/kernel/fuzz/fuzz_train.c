/* Training on any bytes: equal to a slow training; nothing leaks or is written when an allocation
   fails, each in turn; what are no counts is refused.

       clang -g -O1 -fsanitize=fuzzer,address,undefined fuzz_train.c -o fuzz_train
       ./fuzz_train -max_len=600 corpus seeds/train
   or without libFuzzer, on generated inputs and on files:
       cc -g -O1 -DSTANDALONE -fsanitize=address,undefined fuzz_train.c -o fuzz_train
       ./fuzz_train FILE...

   An input is: flags, merges, min_count, then chunks, each its length, its count and its bytes. */
#define BP_TEST_ALLOC
#define TRAIN_TINY 1
#include <stdio.h>

#include "../train.c"

enum { MOST_BYTES = 512, MOST_CHUNKS = 128, MOST_MERGES = 255 };
enum { FEW_LETTERS = 1, LARGE_COUNTS = 2, HUGE_COUNTS = 4, RAW = 8, FAILING = 16 };

static size_t allocations, failing_allocation;

bool bp_test_allocation_fails(void) { return ++allocations == failing_allocation; }

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

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

static void check(const struct arguments *given, bool failing)
{
    static struct results expected, results, untouched;
    memset(&untouched, 0xAA, sizeof untouched);
    failing_allocation = 0;
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
    const size_t all = failing ? allocations : 0;
    for (failing_allocation = 1; failing_allocation <= all; failing_allocation++) {
        CHECK(train(given, &results) == BP_NO_MEMORY);
        CHECK(memcmp(&results, &untouched, sizeof results) == 0);
    }
}

static uint64_t take(const uint8_t **data, size_t *size, size_t bytes)
{
    uint64_t value = 0;
    for (; bytes > 0 && *size > 0; bytes--, (*data)++, (*size)--)
        value = value << 8 | **data;
    return value;
}

static uint64_t count_of(uint64_t byte, uint64_t flags)
{
    if (flags & HUGE_COUNTS)
        return (byte + 1) << 40;
    return flags & LARGE_COUNTS ? byte * byte * byte + 1 : byte % 8 + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Arrays that end where their contents end, so that the sanitizer sees a step too far. */
    static uint64_t ends[MOST_CHUNKS], counts[MOST_CHUNKS];
    static uint8_t chunks[MOST_BYTES];
    struct arguments given = {0};
    const uint64_t flags = take(&data, &size, 1);
    given.merges = take(&data, &size, flags & RAW ? 4 : 1);
    given.min_count = take(&data, &size, 1) % 5 + !(flags & RAW);
    while (size > 2 && given.distinct < MOST_CHUNKS && given.size < MOST_BYTES) {
        size_t length = (size_t)take(&data, &size, 1) % 48 + 1;
        counts[given.distinct] = take(&data, &size, flags & RAW ? 8 : 1);
        if (!(flags & RAW))
            counts[given.distinct] = count_of(counts[given.distinct], flags);
        for (; length > 0 && size > 0 && given.size < MOST_BYTES; length--, given.size++) {
            const uint64_t byte = take(&data, &size, 1);
            chunks[given.size] = (uint8_t)(flags & FEW_LETTERS ? byte % 3 : byte % BYTES);
        }
        ends[given.distinct++] = given.size;
    }
    if (flags & RAW) {  /* nothing holds but the size of the arrays */
        for (size_t i = 0; i < given.distinct && size > 0; i++)
            ends[i] = take(&data, &size, 1) % (given.size + 1);
        if (given.merges > MOST_MERGES && given.merges <= INT32_MAX - 256)
            given.merges = MOST_MERGES;
    }
    given.chunks = malloc(given.size);
    given.ends = malloc(8 * given.distinct);
    given.counts = malloc(8 * given.distinct);
    memcpy(given.chunks, chunks, given.size);
    memcpy(given.ends, ends, 8 * given.distinct);
    memcpy(given.counts, counts, 8 * given.distinct);
    check(&given, flags & FAILING);
    free(given.chunks);
    free(given.ends);
    free(given.counts);
    return 0;
}

#ifdef STANDALONE
static void run_file(const char *path)
{
    static uint8_t input[1 << 16];
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    LLVMFuzzerTestOneInput(input, fread(input, 1, sizeof input, file));
    fclose(file);
}

static void run_generated(unsigned inputs)
{
    uint64_t random = 0x9E3779B97F4A7C15;
    for (unsigned i = 0; i < inputs; i++) {
        uint8_t input[600];
        for (size_t at = 0; at < sizeof input; at++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            input[at] = (uint8_t)random;
        }
        input[0] &= i % 8 == 0 ? 31 : 31 - RAW;
        LLVMFuzzerTestOneInput(input, 3 + random % (sizeof input - 2));
    }
}

int main(int argc, char **argv)
{
    run_generated(2000);
    for (int i = 1; i < argc; i++)
        run_file(argv[i]);
    puts("all as expected");
    return 0;
}
#endif
