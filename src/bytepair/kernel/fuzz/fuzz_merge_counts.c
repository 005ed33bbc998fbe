/* Merging runs seen through windows of any size, into any room: equal to adding up a table; nothing
   is read outside a window or leaks when an allocation fails; what is no run is refused.

       clang -g -O1 -fsanitize=fuzzer,address,undefined fuzz_merge_counts.c -o fuzz_merge_counts
       ./fuzz_merge_counts -max_len=200
   or without libFuzzer, on generated inputs:
       cc -g -O1 -DSTANDALONE -fsanitize=address,undefined fuzz_merge_counts.c -o fuzz_merge_counts
       ./fuzz_merge_counts

   An input is: a seed of sizes, the number of runs, then for each which chunks of the table it has
   and what it counts; or, if the first bit is set, runs of any numbers. */
#define BP_TEST_ALLOC
#include <stdio.h>

#include "../merge_counts.c"
#include "../sort.c"

enum { MOST_RUNS = 6, TABLE = 14, MOST_SIZE = 3 };

/* Every chunk of up to three letters of two, in order; \xFF is what an empty head looks like. */
static const char *const table[TABLE] = {
    "\x01",     "\x01\x01",     "\x01\x01\x01", "\x01\x01\xFF", "\x01\xFF",
    "\x01\xFF\x01", "\x01\xFF\xFF", "\xFF",     "\xFF\x01",     "\xFF\x01\x01",
    "\xFF\x01\xFF", "\xFF\xFF",     "\xFF\xFF\x01", "\xFF\xFF\xFF",
};

static size_t allocations, failing_allocation;

bool bp_test_allocation_fails(void) { return ++allocations == failing_allocation; }

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

typedef struct {
    const uint8_t *at;
    size_t left;
} input;

static uint64_t take_bytes(input *in, size_t bytes) {
    uint64_t value = 0;
    for (; bytes > 0 && in->left > 0; bytes--, in->left--) {
        value = value << 8 | *in->at++;
    }
    return value;
}

static size_t below(uint64_t *state, size_t limit) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33) % limit;
}

/* Memory that ends where its contents end, so that the sanitizer sees a step too far. */
static void *exact(const void *data, size_t size) {
    void *copy = malloc(size);
    CHECK(copy != NULL || size == 0);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

typedef struct {
    uint8_t chunks[TABLE * MOST_SIZE];
    uint64_t ends[TABLE], counts[TABLE];
    size_t number, shown;
} whole_run;

static void free_window(bp_run *run) {
    free((void *)(uintptr_t)run->chunks);
    free((void *)(uintptr_t)run->ends);
    free((void *)(uintptr_t)run->counts);
}

static void show(bp_run *run, whole_run *whole, size_t number) {
    if (number > whole->number - whole->shown) {
        number = whole->number - whole->shown;
    }
    const size_t first = whole->shown, last = first + number;
    const uint64_t start = first == 0 ? 0 : whole->ends[first - 1];
    const uint64_t end = last == 0 ? 0 : whole->ends[last - 1];
    free_window(run);
    *run = (bp_run){
        .chunks = exact(whole->chunks + start, (size_t)(end - start)),
        .ends = exact(whole->ends + first, number * sizeof *run->ends),
        .counts = exact(whole->counts + first, number * sizeof *run->counts),
        .size = (size_t)(end - start),
        .number = number,
        .origin = start,
        .last = last == whole->number,
    };
    whole->shown = last;
}

static void merge_windows(input *in) {
    uint64_t state = take_bytes(in, 4), sums[TABLE] = {0};
    bool overflows = false;
    const size_t runs = 1 + take_bytes(in, 1) % MOST_RUNS;
    whole_run whole[MOST_RUNS];
    bp_run windows[MOST_RUNS] = {{0}};
    memset(whole, 0, sizeof whole);
    for (size_t i = 0; i < runs; i++) {
        const uint64_t has = take_bytes(in, 2);
        uint64_t end = 0;
        for (size_t chunk = 0; chunk < TABLE; chunk++) {
            if (has >> chunk & 1) {
                const uint64_t count = 1 + (take_bytes(in, 1) << (has >> 15 ? 56 : 0));
                const size_t size = strlen(table[chunk]);
                memcpy(whole[i].chunks + end, table[chunk], size);
                whole[i].ends[whole[i].number] = end += size;
                whole[i].counts[whole[i].number++] = count;
                overflows |= count > UINT64_MAX - sums[chunk];
                sums[chunk] += count;
            }
        }
        show(&windows[i], &whole[i], 1 + below(&state, 4));
    }
    size_t chunk = 0, culprit = 0, size_room = below(&state, 8);
    uint64_t end = 0;
    bool is_done = false;
    while (!is_done) {
        const size_t room = 1 + below(&state, 5);
        bp_merged into = {
            .chunks = malloc(size_room), .ends = malloc(room * 8), .counts = malloc(room * 8),
            .size_room = size_room, .room = room, .origin = end,
        };
        bp_run before[MOST_RUNS];
        memcpy(before, windows, sizeof before);
        allocations = 0;
        failing_allocation = below(&state, 8);
        const bp_status status = bp_counts_merge(windows, runs, &into, &culprit);
        if (status == BP_NO_MEMORY || status == BP_NO_ROOM) {
            CHECK(status == BP_NO_ROOM || (failing_allocation - 1) < 2);
            CHECK(memcmp(before, windows, sizeof before) == 0 && into.number == 0);
            size_room += status == BP_NO_ROOM;
        } else if (status == BP_TOO_LARGE) {
            CHECK(overflows && culprit < runs);
            is_done = true;
        } else {
            CHECK(status == BP_OK);
            uint64_t start = 0;
            for (size_t i = 0; i < into.number; i++, chunk++) {
                while (sums[chunk] == 0) {
                    chunk++;
                }
                const uint64_t next = into.ends[i] - end;
                CHECK(next - start == strlen(table[chunk]) && into.counts[i] == sums[chunk]);
                CHECK(memcmp(into.chunks + start, table[chunk], (size_t)(next - start)) == 0);
                start = next;
            }
            CHECK(start == into.size);
            end += into.size;
            is_done = into.number == 0;
            for (size_t i = 0; i < runs; i++) {
                if (windows[i].taken == windows[i].number && !windows[i].last) {
                    show(&windows[i], &whole[i], 1 + below(&state, 4));
                    is_done = false;
                }
                CHECK(!is_done || windows[i].taken == windows[i].number);
            }
        }
        free(into.chunks);
        free(into.ends);
        free(into.counts);
    }
    for (size_t i = 0; i < runs; i++) {
        free_window(&windows[i]);
    }
}

/* Whatever stands in the arrays, no byte outside is read, and the sums fit their room. */
static void merge_anything(input *in) {
    const size_t runs = take_bytes(in, 1) % (MOST_RUNS + 1);
    bp_run windows[MOST_RUNS] = {{0}};
    for (size_t i = 0; i < runs; i++) {
        whole_run any;
        memset(&any, 0, sizeof any);
        any.number = take_bytes(in, 1) % 4;
        windows[i] = (bp_run){
            .size = take_bytes(in, 1) % 6,
            .number = any.number,
            .taken = take_bytes(in, 1) % 3,
            .origin = (take_bytes(in, 1) & 7) - 1,
            .last = (int)(take_bytes(in, 1) & 1),
        };
        for (size_t j = 0; j < any.number; j++) {
            any.ends[j] = take_bytes(in, 1) % 16 - 1;
            any.counts[j] = take_bytes(in, 1) % 8;
        }
        for (size_t j = 0; j < windows[i].size; j++) {
            any.chunks[j] = (uint8_t)take_bytes(in, 1);
        }
        windows[i].chunks = exact(any.chunks, windows[i].size);
        windows[i].ends = exact(any.ends, any.number * 8);
        windows[i].counts = exact(any.counts, any.number * 8);
    }
    const size_t size_room = take_bytes(in, 1) % 8, room = take_bytes(in, 1) % 4;
    bp_merged into = {
        .chunks = malloc(size_room), .ends = malloc(room * 8), .counts = malloc(room * 8),
        .size_room = size_room, .room = room,
    };
    size_t culprit = 0;
    failing_allocation = 0;
    const bp_status status = bp_counts_merge(windows, runs, &into, &culprit);
    CHECK(into.number <= room && into.size <= size_room);
    CHECK(status == BP_OK || status == BP_NO_ROOM || culprit < runs);
    if (status == BP_OK && into.number > 0) {
        CHECK(bp_counts_are_sorted(into.chunks, into.size, into.ends, into.counts, into.number));
    }
    for (size_t i = 0; i < runs; i++) {
        free_window(&windows[i]);
    }
    free(into.chunks);
    free(into.ends);
    free(into.counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    if (take_bytes(&in, 1) & 1) {
        merge_anything(&in);
    } else {
        merge_windows(&in);
    }
    return 0;
}

#ifdef STANDALONE
int main(void) {
    uint64_t state = 1;
    uint8_t data[200];
    for (size_t i = 0; i < 50000; i++) {
        const size_t size = below(&state, sizeof data);
        for (size_t j = 0; j < size; j++) {
            data[j] = (uint8_t)below(&state, 256);
        }
        LLVMFuzzerTestOneInput(data, size);
    }
    puts("all as expected");
    return 0;
}
#endif
