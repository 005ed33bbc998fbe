/* Merging runs seen through windows of any size, into any room: equal to adding up a table; nothing
   is read outside a window or leaks when an allocation fails; what is no run is refused.

   An input is: a bit that says which of two kinds it is. Then a seed of sizes, the number of runs,
   and for each which chunks of the table it has and what it counts; or runs of any numbers. */
#include "fuzz.h"

#include "../merge_counts.c"
#include "../sort.c"

enum { MOST_RUNS = 6, TABLE = 14, MOST_SIZE = 3 };

/* Every chunk of up to three letters of two, in order; \xFF is what an empty head looks like. */
static const char *const table[TABLE] = {
    "\x01",     "\x01\x01",     "\x01\x01\x01", "\x01\x01\xFF", "\x01\xFF",
    "\x01\xFF\x01", "\x01\xFF\xFF", "\xFF",     "\xFF\x01",     "\xFF\x01\x01",
    "\xFF\x01\xFF", "\xFF\xFF",     "\xFF\xFF\x01", "\xFF\xFF\xFF",
};

static size_t below_from(uint64_t *state, size_t limit) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33) % limit;
}

typedef struct {
    uint8_t chunks[TABLE * MOST_SIZE];
    uint64_t ends[TABLE], counts[TABLE];
    size_t number, shown;
} whole_run;

static void free_window(bp_run *run) {
    discard((void *)(uintptr_t)run->chunks);
    discard((void *)(uintptr_t)run->ends);
    discard((void *)(uintptr_t)run->counts);
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
    uint64_t state = take(in, 4), sums[TABLE] = {0};
    bool overflows = false;
    const size_t runs = 1 + take(in, 1) % MOST_RUNS;
    whole_run whole[MOST_RUNS];
    bp_run windows[MOST_RUNS] = {{0}};
    memset(whole, 0, sizeof whole);
    for (size_t i = 0; i < runs; i++) {
        const uint64_t has = take(in, 2);
        uint64_t end = 0;
        for (size_t chunk = 0; chunk < TABLE; chunk++) {
            if (has >> chunk & 1) {
                const uint64_t count = 1 + (take(in, 1) << (has >> 15 ? 56 : 0));
                const size_t size = strlen(table[chunk]);
                memcpy(whole[i].chunks + end, table[chunk], size);
                whole[i].ends[whole[i].number] = end += size;
                whole[i].counts[whole[i].number++] = count;
                overflows |= count > UINT64_MAX - sums[chunk];
                sums[chunk] += count;
            }
        }
        show(&windows[i], &whole[i], 1 + below_from(&state, 4));
    }
    size_t chunk = 0, culprit = 0, size_room = below_from(&state, 8);
    uint64_t end = 0;
    bool is_done = false;
    while (!is_done) {
        const size_t room = 1 + below_from(&state, 5);
        bp_merged into = {
            .chunks = exact(NULL, size_room), .ends = exact(NULL, room * 8), .counts = exact(NULL, room * 8),
            .size_room = size_room, .room = room, .origin = end,
        };
        bp_run before[MOST_RUNS];
        memcpy(before, windows, sizeof before);
        allocations = 0;
        failing = below_from(&state, 8);
        const bp_status status = bp_counts_merge(windows, runs, &into, &culprit);
        CHECK(held == 0);
        if (status == BP_NO_MEMORY || status == BP_NO_ROOM) {
            CHECK(status == BP_NO_ROOM || failing - 1 < 2);
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
                    show(&windows[i], &whole[i], 1 + below_from(&state, 4));
                    is_done = false;
                }
                CHECK(!is_done || windows[i].taken == windows[i].number);
            }
        }
        discard(into.chunks);
        discard(into.ends);
        discard(into.counts);
    }
    for (size_t i = 0; i < runs; i++) {
        free_window(&windows[i]);
    }
}

/* Whatever stands in the arrays, no byte outside is read, and the sums fit their room. */
static void merge_anything(input *in) {
    const size_t runs = take(in, 1) % (MOST_RUNS + 1);
    bp_run windows[MOST_RUNS] = {{0}};
    for (size_t i = 0; i < runs; i++) {
        whole_run any;
        memset(&any, 0, sizeof any);
        any.number = take(in, 1) % 4;
        windows[i] = (bp_run){
            .size = take(in, 1) % 6,
            .number = any.number,
            .taken = take(in, 1) % 3,
            .origin = (take(in, 1) & 7) - 1,
            .last = (int)(take(in, 1) & 1),
        };
        for (size_t j = 0; j < any.number; j++) {
            any.ends[j] = take(in, 1) % 16 - 1;
            any.counts[j] = take(in, 1) % 8;
        }
        for (size_t j = 0; j < windows[i].size; j++) {
            any.chunks[j] = (uint8_t)take(in, 1);
        }
        windows[i].chunks = exact(any.chunks, windows[i].size);
        windows[i].ends = exact(any.ends, any.number * 8);
        windows[i].counts = exact(any.counts, any.number * 8);
    }
    const size_t size_room = take(in, 1) % 8, room = take(in, 1) % 4;
    bp_merged into = {
        .chunks = exact(NULL, size_room), .ends = exact(NULL, room * 8), .counts = exact(NULL, room * 8),
        .size_room = size_room, .room = room,
    };
    size_t culprit = 0;
    failing = 0;
    const bp_status status = bp_counts_merge(windows, runs, &into, &culprit);
    CHECK(held == 0);
    CHECK(into.number <= room && into.size <= size_room);
    CHECK(status == BP_OK || status == BP_NO_ROOM || culprit < runs);
    if (status == BP_OK && into.number > 0) {
        CHECK(bp_counts_are_sorted(into.chunks, into.size, into.ends, into.counts, into.number));
    }
    for (size_t i = 0; i < runs; i++) {
        free_window(&windows[i]);
    }
    discard(into.chunks);
    discard(into.ends);
    discard(into.counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    if (take(&in, 1) & 1) {
        merge_anything(&in);
    } else {
        merge_windows(&in);
    }
    return 0;
}
