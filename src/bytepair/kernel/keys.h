/* Keys and hashes of short byte strings. Internal to the kernel. */
#ifndef BYTEPAIR_KEYS_H
#define BYTEPAIR_KEYS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define BP_PREFETCH(address) __builtin_prefetch(address)
#else
#define BP_PREFETCH(address) ((void)0)
#endif

/* The fuzz targets set this to 1: small tables and buffers, so that little text meets all of the
   code. */
#ifndef BP_TINY
#define BP_TINY 0
#endif

#define BP_MULTIPLY_1 UINT64_C(0x9E3779B97F4A7C15)
#define BP_MULTIPLY_2 UINT64_C(0xD6E8FEB86659FD93)

/* Chunks up to this many bytes are a key of one or two words, with the length in the top byte. */
#define BP_SHORT 7u
#define BP_MIDDLE 15u

/* Eight bytes, the first lowest. */
static inline uint64_t bp_load8(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

/* The first `size` bytes, at most eight, of a load of eight. */
static inline uint64_t bp_first_bytes(uint64_t value, size_t size) {
    static const uint64_t masks[9] = {
        0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF,
        UINT64_MAX};
    return value & masks[size < 8 ? size : 8];
}

static inline uint64_t bp_with_size(uint64_t value, size_t size) {
    return value | (uint64_t)size << 56;
}

static inline size_t bp_hash_short(uint64_t key) {
    return (size_t)((key * BP_MULTIPLY_1) >> 32);
}

static inline size_t bp_hash_middle(uint64_t low, uint64_t high) {
    uint64_t mixed = low ^ high * BP_MULTIPLY_2;
    mixed ^= mixed >> 32;
    return (size_t)((mixed * BP_MULTIPLY_1) >> 32);
}

/* Of at least eight bytes. */
static inline uint64_t bp_hash_long(const uint8_t *at, size_t size) {
    uint64_t hash = size * BP_MULTIPLY_2;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        hash = (hash ^ bp_load8(at + i)) * BP_MULTIPLY_1;
        hash ^= hash >> 29;
    }
    hash = (hash ^ bp_load8(at + size - 8)) * BP_MULTIPLY_2;
    return hash ^ hash >> 32;
}

static inline size_t bp_long_place(uint64_t hash) {
    return (size_t)(hash >> 20);
}

#endif
