/* The order of chunks: that of their bytes, and of equal beginnings the shorter first. */
#ifndef BYTEPAIR_ORDER_H
#define BYTEPAIR_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline int bp_compare_chunks(const uint8_t *a, size_t a_size, const uint8_t *b,
                                    size_t b_size) {
    const int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

/* Eight bytes as a number, the first highest, zeros after the end: different numbers are in the
   order of their chunks. */
static inline uint64_t bp_leading_bytes(const uint8_t *chunk, size_t size) {
    uint64_t leading = 0;
    for (size_t i = 0; i < 8; i++) {
        leading = leading << 8 | (i < size ? chunk[i] : 0);
    }
    return leading;
}

#endif
