/* What every fuzz target has: an input read piece by piece, allocations that can be made to fail,
   and a main for compilers without libFuzzer. To be included before the sources of the kernel. */
#ifndef BYTEPAIR_FUZZ_H
#define BYTEPAIR_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            give_up();                                                                             \
        }                                                                                          \
    } while (0)

#ifdef STANDALONE
static void show_input(void);
static inline void give_up(void) {
    show_input();
    abort();
}
#else
static inline void give_up(void) { abort(); }
#endif

/* ---- the input ---- */

typedef struct {
    const uint8_t *at;
    size_t left;
} input;

/* The next bytes as a number; what is missing at the end reads as nothing. */
static inline uint64_t take(input *in, size_t bytes) {
    uint64_t value = 0;
    for (; bytes > 0 && in->left > 0; bytes--, in->left--) {
        value = value << 8 | *in->at++;
    }
    return value;
}

static inline size_t take_below(input *in, size_t limit) {
    return (size_t)take(in, limit > 256 ? 2 : 1) % limit;
}

/* Memory that ends where its contents end, so that the sanitizer sees a step too far. */
static inline void *exact(const void *data, size_t size) {
    void *copy = malloc(size);
    CHECK(copy != NULL || size == 0);
    if (size > 0 && data != NULL) {
        memcpy(copy, data, size);
    }
    return copy;
}

static inline void discard(void *memory) { free(memory); }

/* ---- main, without libFuzzer: the files, then inputs made of them, for so many seconds ---- */

#ifdef STANDALONE

#include <sanitizer/common_interface_defs.h>
#include <time.h>

enum { MOST_FILES = 256, MOST_INPUT = 4096 };

static uint8_t tried[MOST_INPUT];
static size_t tried_size;

/* In octal, as printf(1) takes it. */
static void show_input(void) {
    fputs("the input: ", stderr);
    for (size_t i = 0; i < tried_size; i++) {
        fprintf(stderr, "\\%03o", tried[i]);
    }
    fputs("\n", stderr);
}

static void try_input(void) {
    uint8_t *input = exact(tried, tried_size);
    LLVMFuzzerTestOneInput(input, tried_size);
    discard(input);
}

static uint64_t chance(void) {
    static uint64_t state = 0x9E3779B97F4A7C15;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
}

static size_t change(uint8_t *data, size_t size) {
    for (uint64_t changes = 1 + chance() % 8; changes > 0; changes--) {
        const size_t at = size > 0 ? (size_t)(chance() % size) : 0;
        const size_t length = 1 + (size_t)(chance() % 16);
        switch (size > 0 ? chance() % 5 : 3) {
        case 0:
            data[at] ^= (uint8_t)(1u << chance() % 8);
            break;
        case 1:
            data[at] = (uint8_t)chance();
            break;
        case 2: /* a piece goes */
            if (at + length < size) {
                memmove(data + at, data + at + length, size - at - length);
                size -= length;
            }
            break;
        case 3: /* a piece of chance */
            if (size + length <= MOST_INPUT) {
                memmove(data + at + length, data + at, size - at);
                for (size_t i = 0; i < length; i++) {
                    data[at + i] = (uint8_t)chance();
                }
                size += length;
            }
            break;
        default: /* a piece twice */
            if (at + length < size && size + length <= MOST_INPUT) {
                memmove(data + at + length, data + at, size - at);
                size += length;
            }
        }
    }
    return size;
}

/* fuzz_name SECONDS FILE... */
int main(int argc, char **argv) {
    static uint8_t files[MOST_FILES][MOST_INPUT];
    static size_t sizes[MOST_FILES]; /* the first file is the empty one */
    size_t number = 1;
    unsigned long inputs = 0;
    __sanitizer_set_death_callback(show_input);
    for (int i = 2; i < argc && number < MOST_FILES; i++, number++) {
        FILE *file = fopen(argv[i], "rb");
        CHECK(file != NULL);
        sizes[number] = fread(files[number], 1, MOST_INPUT, file);
        fclose(file);
    }
    for (; inputs < number; inputs++) {
        memcpy(tried, files[inputs], tried_size = sizes[inputs]);
        try_input();
    }
    const time_t stop = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 0);
    for (; time(NULL) < stop; inputs++) {
        const size_t one = (size_t)(chance() % number);
        memcpy(tried, files[one], sizes[one]);
        tried_size = change(tried, sizes[one]);
        try_input();
    }
    printf("%lu inputs, all as expected\n", inputs);
    return 0;
}

#endif

/* ---- allocations: the one of the number `failing` fails, and what is not freed shows in `held` ---- */

static size_t allocations, failing, held;

static inline void *counted(void *memory) {
    held += memory != NULL;
    return memory;
}

static inline bool fails(void) { return ++allocations == failing; }

static inline void *fuzz_malloc(size_t size) { return fails() ? NULL : counted(malloc(size)); }

static inline void *fuzz_calloc(size_t number, size_t size) {
    return fails() ? NULL : counted(calloc(number, size));
}

static inline void *fuzz_realloc(void *memory, size_t size) {
    if (fails()) {
        return NULL;
    }
    held -= memory != NULL;
    return counted(realloc(memory, size));
}

static inline void fuzz_free(void *memory) {
    held -= memory != NULL;
    free(memory);
}

#define malloc fuzz_malloc
#define calloc fuzz_calloc
#define realloc fuzz_realloc
#define free fuzz_free

#endif
