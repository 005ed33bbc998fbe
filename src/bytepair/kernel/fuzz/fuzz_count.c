/* Counting equals a slow count, whatever the pieces that documents are fed in, with chunks that were
   cut elsewhere and with what another counter has counted. When an allocation fails, each in turn,
   that is the status, and nothing leaks.

   An input is: flags, pattern, then operations on two counters; see run(). */
#include "fuzz.h"

#define BP_TINY 1
#include "../pages.c"
#include "../rules.c"
#include "../scan.c"
#include "../count.c"

#include "slow_scan.h"
#include "text.h"

enum { RAW = 1, FAILING = 2 };
enum { MOST_BYTES = 1 << 16, MOST_ENTRIES = 1 << 17, MOST_CHUNK = 40, MOST_DOCUMENTS = 16 };

/* ---- the slow count: every chunk is an entry, and equal ones are put together in the end ---- */

typedef struct {
    const uint8_t *chunk;
    size_t size;
    uint64_t times;
} entry;

typedef struct {
    entry entries[MOST_ENTRIES];
    size_t number;
    uint8_t bytes[MOST_BYTES]; /* of the entries, and at the end of the open document */
    size_t used, document;
    bool is_text; /* all documents were UTF-8, so that their chunks are known */
    uint64_t weight;
} slow_counter;

static void add_slowly(slow_counter *slow, const uint8_t *chunk, size_t size, uint64_t times) {
    CHECK(slow->number < MOST_ENTRIES);
    slow->entries[slow->number++] = (entry){chunk, size, times};
    slow->weight += size * times;
}

static void end_document(slow_counter *slow, bp_pattern pattern) {
    const uint8_t *at = slow->bytes + slow->document, *end = slow->bytes + slow->used;
    if (slow_valid_utf8(at, (size_t)(end - at)) != (size_t)(end - at)) {
        slow->is_text = false;
        slow->weight += (size_t)(end - at);
        at = end;
    }
    while (at < end) {
        const uint8_t *stop = slow_chunk_end(pattern, at, end);
        add_slowly(slow, at, (size_t)(stop - at), 1);
        at = stop;
    }
    slow->document = slow->used;
}

static void merge_slowly(slow_counter *into, const slow_counter *from) {
    into->is_text = into->is_text && from->is_text;
    if (!into->is_text) {
        into->weight += from->weight;
        return;
    }
    for (size_t i = 0, number = from->number; i < number; i++) {
        add_slowly(into, from->entries[i].chunk, from->entries[i].size, from->entries[i].times);
    }
}

static int compare_entries(const void *one, const void *other) {
    const entry *a = one, *b = other;
    const int order = memcmp(a->chunk, b->chunk, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static size_t sort_together(entry *entries, size_t number) {
    size_t kept = 0;
    qsort(entries, number, sizeof *entries, compare_entries);
    for (size_t i = 0; i < number; i++) {
        if (kept > 0 && compare_entries(&entries[kept - 1], &entries[i]) == 0) {
            entries[kept - 1].times += entries[i].times;
        } else {
            entries[kept++] = entries[i];
        }
    }
    return kept;
}

/* ---- comparing ---- */

static void check_counts(bp_counter *counter, slow_counter *slow) {
    static entry found[MOST_ENTRIES];
    size_t distinct, bytes;
    bp_counter_size(counter, &distinct, &bytes);
    CHECK(distinct <= MOST_ENTRIES);
    CHECK(bp_counter_memory(counter) >= bytes + 8 * distinct);
    uint8_t *chunks = exact(NULL, bytes);
    uint64_t *ends = exact(NULL, 8 * distinct), *counts = exact(NULL, 8 * distinct);
    bp_counter_take(counter, chunks, ends, counts);
    uint64_t start = 0, weight = 0;
    for (size_t i = 0; i < distinct; start = ends[i++]) {
        CHECK(ends[i] > start && ends[i] <= bytes);
        found[i] = (entry){chunks + start, (size_t)(ends[i] - start), counts[i]};
        weight += found[i].size * counts[i];
    }
    CHECK(start == bytes);
    CHECK(sort_together(found, distinct) == distinct);
    CHECK(weight == slow->weight);
    if (slow->is_text) {
        CHECK(sort_together(slow->entries, slow->number) == distinct);
        for (size_t i = 0; i < distinct; i++) {
            CHECK(compare_entries(&found[i], &slow->entries[i]) == 0);
            CHECK(found[i].times == slow->entries[i].times);
        }
    }
    discard(chunks);
    discard(ends);
    discard(counts);
}

/* ---- operations ---- */

typedef struct {
    bp_counter *fast[2];
    slow_counter *slow[2];
    bp_pattern pattern;
} counters;

/* As a memory block of its own, in two pieces. */
static bp_status feed(const counters *all, int which, const uint8_t *text, size_t size,
                      size_t first, int last) {
    uint8_t *one = exact(text, first), *other = exact(text + first, size - first);
    bp_status status = bp_counter_feed(all->fast[which], one, first, 0);
    if (status == BP_OK) {
        status = bp_counter_feed(all->fast[which], other, size - first, last);
    }
    discard(one);
    discard(other);
    if (last) {
        end_document(all->slow[which], all->pattern);
    }
    return status;
}

static bp_status add(const counters *all, int which, const uint8_t *chunk, size_t size,
                     uint64_t times) {
    uint8_t *copy = exact(chunk, size);
    const bp_status status = bp_counter_add(all->fast[which], copy, size, times);
    add_slowly(all->slow[which], chunk, size, times);
    discard(copy);
    return status;
}

/* Chunks that differ in their last two bytes, or in their one. */
static bp_status add_many(const counters *all, int which, size_t number, size_t size) {
    slow_counter *slow = all->slow[which];
    bp_status status = BP_OK;
    for (size_t i = 0; i < number && status == BP_OK; i++) {
        uint8_t *chunk = slow->bytes + slow->used;
        memset(chunk, 'x', size);
        chunk[size - 1] = (uint8_t)i;
        chunk[size > 1 ? size - 2 : 0] = (uint8_t)(size > 1 ? i * 7 : i);
        slow->document = slow->used += size;
        status = add(all, which, chunk, size, i + 1);
    }
    return status;
}

/* Several documents, joined; their ends may be no ends. Then the counter is of no use afterwards. */
static bp_status feed_texts(const counters *all, int which, input *in, bool raw) {
    uint64_t ends[MOST_DOCUMENTS], start = 0;
    slow_counter *slow = all->slow[which];
    const size_t number = take_below(in, MOST_DOCUMENTS);
    for (size_t i = 0; i < number; i++) {
        ends[i] = take(in, 2);
    }
    const size_t input_bytes = take(in, 1);
    const size_t size = make_text(in, raw, input_bytes, slow->bytes + slow->used);
    bool are_ends = true;
    for (size_t i = 0; i < number; start = ends[i++]) {
        ends[i] = ends[i] >> 15 != 0 ? ends[i] << 40 : ends[i] % (size + 1);
        if (i + 1 == number && ends[i] % 8 > 0) {
            ends[i] = size;
        }
        are_ends = are_ends && ends[i] >= start && ends[i] <= size;
    }
    are_ends = are_ends && start == size;
    uint8_t *text = exact(slow->bytes + slow->used, size);
    uint64_t *given = exact(ends, 8 * number);
    const bp_status status = bp_counter_feed_texts(all->fast[which], text, size, given, number);
    CHECK(status == (are_ends ? BP_OK : BP_BAD_INPUT) || status == BP_NO_MEMORY);
    discard(text);
    discard(given);
    start = 0;
    for (size_t i = 0; i < number && are_ends; start = ends[i++]) {
        slow->used += (size_t)(ends[i] - start);
        end_document(slow, all->pattern);
    }
    return status;
}

static bp_status operate(const counters *all, input *in, bool raw) {
    const uint64_t operation = take(in, 1);
    const int which = operation & 1, last = operation >> 1 & 1;
    slow_counter *slow = all->slow[which];
    uint8_t *at = slow->bytes + slow->used;
    size_t size;
    switch (slow->document == slow->used ? operation >> 2 & 7 : 0) {
    case 4: /* a chunk that was cut elsewhere */
        size = take_below(in, MOST_CHUNK);
        for (size_t i = 0; i < size; i++) {
            at[i] = (uint8_t)take(in, 1);
        }
        if (size == 0) {
            CHECK(bp_counter_add(all->fast[which], at, 0, 1) == BP_BAD_INPUT);
            return BP_OK;
        }
        slow->document = slow->used += size;
        return add(all, which, at, size, take(in, last ? 8 : 1) + 1);
    case 5:
        size = 1 + take_below(in, MOST_CHUNK);
        return add_many(all, which, take_below(in, 256), size);
    case 6:
        if (all->slow[last]->document < all->slow[last]->used) { /* how much of it, is not said */
            return BP_OK;
        }
        merge_slowly(slow, all->slow[last]);
        return bp_counter_merge(all->fast[which], all->fast[last]);
    case 7:
        return feed_texts(all, which, in, raw);
    default: { /* a piece of a document */
        const size_t input_bytes = take(in, 1), split = (size_t)take(in, 2);
        size = make_text(in, raw, input_bytes, at);
        slow->used += size;
        return feed(all, which, at, size, split % (size + 1), last);
    }
    }
}

/* Returns the number of allocations. If one of them is to fail, its operation has to. */
static size_t run(input in, const bp_scanner *scanner, bool raw) {
    static slow_counter slow[2];
    counters all = {{NULL, NULL}, {&slow[0], &slow[1]}, scanner->pattern};
    bp_status status = BP_OK;
    allocations = 0;
    for (int i = 0; i < 2; i++) {
        slow[i].number = slow[i].used = slow[i].document = 0;
        slow[i].weight = 0;
        slow[i].is_text = true;
        if (status == BP_OK) {
            status = bp_counter_new(scanner, &all.fast[i]);
            CHECK((status == BP_OK) == (all.fast[i] != NULL));
        }
    }
    while (status == BP_OK && in.left > 0 && slow[0].used < MOST_BYTES / 2 &&
           slow[1].used < MOST_BYTES / 2 && slow[0].number < MOST_ENTRIES / 4 &&
           slow[1].number < MOST_ENTRIES / 4) {
        status = operate(&all, &in, raw);
    }
    for (int i = 0; i < 2 && status == BP_OK; i++) {
        status = feed(&all, i, slow[i].bytes, 0, 0, 1);
    }
    CHECK((status == BP_NO_MEMORY) == (failing > 0 && failing <= allocations));
    for (int i = 0; i < 2; i++) {
        if (status == BP_OK) {
            check_counts(all.fast[i], all.slow[i]);
        }
        bp_counter_free(all.fast[i]);
    }
    CHECK(held == 0);
    return allocations;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    const uint64_t flags = take(&in, 1);
    const bp_scanner *scanner = known_scanner(take(&in, 1));
    failing = 0;
    const size_t all = run(in, scanner, flags & RAW);
    for (failing = 1; flags & FAILING && failing <= all; failing++) {
        run(in, scanner, flags & RAW);
    }
    failing = 0;
    return 0;
}
