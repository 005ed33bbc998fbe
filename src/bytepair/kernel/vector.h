/* Sixty-four bytes at once: a bit for each byte in a range. SSE2 is part of every x86-64, NEON of
   every AArch64; elsewhere BP_WINDOW is not defined, and the rules find every chunk. */
#ifndef BYTEPAIR_VECTOR_H
#define BYTEPAIR_VECTOR_H

#include <stdint.h>

#if defined(__GNUC__) && !defined(BP_NO_VECTORS)
#if defined(__SSE2__)

#include <emmintrin.h>
#define BP_WINDOW 64

typedef struct {
    __m128i part[4];
} bp_vector;

static inline bp_vector bp_load64(const uint8_t *at) {
    bp_vector v;
    for (int i = 0; i < 4; i++) {
        v.part[i] = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
    }
    return v;
}

/* Upper-case ASCII letters become lower-case, and no other byte becomes a letter. */
static inline bp_vector bp_lower(bp_vector v) {
    for (int i = 0; i < 4; i++) {
        v.part[i] = _mm_or_si128(v.part[i], _mm_set1_epi8(0x20));
    }
    return v;
}

static inline uint64_t bp_bits_between(bp_vector v, uint8_t first, uint8_t last) {
    const __m128i low = _mm_set1_epi8((char)first), span = _mm_set1_epi8((char)(last - first));
    uint64_t bits = 0;
    for (int i = 3; i >= 0; i--) {
        const __m128i offset = _mm_sub_epi8(v.part[i], low);
        const __m128i inside = _mm_cmpeq_epi8(_mm_min_epu8(offset, span), offset);
        bits = bits << 16 | (uint32_t)_mm_movemask_epi8(inside);
    }
    return bits;
}

static inline uint64_t bp_bits_beyond_ascii(bp_vector v) {
    uint64_t bits = 0;
    for (int i = 3; i >= 0; i--) {
        bits = bits << 16 | (uint32_t)_mm_movemask_epi8(v.part[i]);
    }
    return bits;
}

#elif defined(__aarch64__) && defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#include <arm_neon.h>
#define BP_WINDOW 64

typedef struct {
    uint8x16_t part[4];
} bp_vector;

static inline bp_vector bp_load64(const uint8_t *at) {
    bp_vector v;
    for (int i = 0; i < 4; i++) {
        v.part[i] = vld1q_u8(at + 16 * i);
    }
    return v;
}

static inline bp_vector bp_lower(bp_vector v) {
    for (int i = 0; i < 4; i++) {
        v.part[i] = vorrq_u8(v.part[i], vdupq_n_u8(0x20));
    }
    return v;
}

/* There is no instruction that gathers a bit of each byte: keep bit i of byte i modulo 8, and add
   neighbours until eight bytes are one. */
static inline uint64_t bp_gather(const uint8x16_t inside[4]) {
    static const uint8_t places[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t place = vld1q_u8(places);
    const uint8x16_t first = vpaddq_u8(vandq_u8(inside[0], place), vandq_u8(inside[1], place));
    const uint8x16_t second = vpaddq_u8(vandq_u8(inside[2], place), vandq_u8(inside[3], place));
    const uint8x16_t both = vpaddq_u8(first, second);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(both, both)), 0);
}

static inline uint64_t bp_bits_between(bp_vector v, uint8_t first, uint8_t last) {
    const uint8x16_t low = vdupq_n_u8(first), span = vdupq_n_u8((uint8_t)(last - first));
    uint8x16_t inside[4];
    for (int i = 0; i < 4; i++) {
        inside[i] = vcleq_u8(vsubq_u8(v.part[i], low), span);
    }
    return bp_gather(inside);
}

static inline uint64_t bp_bits_beyond_ascii(bp_vector v) {
    return bp_bits_between(v, 0x80, 0xFF);
}

#endif
#endif
#endif
