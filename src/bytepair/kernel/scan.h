/* Where chunks begin, for the named patterns. Internal to the kernel. */
#ifndef BYTEPAIR_SCAN_H
#define BYTEPAIR_SCAN_H

#include "bytepair.h"

/* What a pattern tells apart. SPACE and above are white space, which only a leading U+0020 of a
   word is not cut by. LINE is CR and LF, which cl100k and o200k treat apart. */
enum {
    BP_OTHER = 0,
    BP_LETTER = 1, /* for words and notebook: all of \w */
    BP_DIGIT = 2,
    BP_UPPER = 3, /* o200k alone: Lu and Lt */
    BP_LOWER = 4, /* o200k alone: Ll */
    BP_MARK = 5,  /* o200k alone; elsewhere marks are OTHER */
    BP_SPACE = 6,
    BP_LINE = 7
};

/* Bytes that a chunk's end must be away from the end of the text to be certain: the longest
   look-ahead is one character, or a contraction of three bytes. Where a rule looks further, to the
   end of a run, it says itself that it came to the end of the text. */
#define BP_LOOKAHEAD 8

/* Bytes after the end of the text that must be readable: a window is loaded whole. */
#define BP_PADDING 64

/* The end of the chunk that begins at `at`, which is before `end`. If `last` is zero more text
   follows: then the answer is right if it is BP_LOOKAHEAD bytes before `end`. */
typedef const uint8_t *(*bp_rule)(const bp_scanner *, const uint8_t *at, const uint8_t *end,
                                  int last);

struct bp_scanner {
    bp_pattern pattern;
    bp_rule rule;
    uint8_t ascii[128];
    uint8_t block[0x1100]; /* of a code point, by its upper bits; then its class in the block */
    uint8_t *classes;      /* 256 a block */
};

/* In rules.c: how a pattern cuts, and the length of 's 't 'd 'm 'll 've 're after an apostrophe at
   `at`, else 0. NULL for a pattern that has no number here. */
bp_rule bp_rule_of(bp_pattern pattern);
size_t bp_contraction(const uint8_t *at, const uint8_t *end);

static inline int bp_has_contractions(bp_pattern pattern) {
    return pattern != BP_WORDS;
}

static inline int bp_is_space(int klass) {
    return klass >= BP_SPACE;
}

/* The class of the character at `at`, and its length in bytes. What is not UTF-8 is one byte of
   class OTHER: callers check their text, this only must not read past `end`. */
static inline int bp_class_at(const bp_scanner *scanner, const uint8_t *at, const uint8_t *end,
                              size_t *width) {
    uint32_t lead = at[0];
    if (lead < 0x80) {
        *width = 1;
        return scanner->ascii[lead];
    }
    ptrdiff_t left = end - at;
    uint32_t code;
    if (lead >= 0xC2 && lead < 0xE0 && left > 1) {
        *width = 2;
        code = (lead & 0x1F) << 6 | (at[1] & 0x3Fu);
    } else if (lead >= 0xE0 && lead < 0xF0 && left > 2) {
        *width = 3;
        code = (lead & 0x0F) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
    } else if (lead >= 0xF0 && lead < 0xF5 && left > 3) {
        *width = 4;
        code = (lead & 0x07) << 18 | (at[1] & 0x3Fu) << 12 | (at[2] & 0x3Fu) << 6 |
               (at[3] & 0x3Fu);
        if (code > 0x10FFFF) {
            code = 0x10FFFF;
        }
    } else {
        *width = 1;
        return BP_OTHER;
    }
    return scanner->classes[256u * scanner->block[code >> 8] + (code & 255)];
}

/* Writes the starts of up to `room` chunks of [at, end), relative to `base`, and returns where it
   stopped, which is the start of the next chunk and is written after the last. If `last` is zero
   more text follows, and a chunk whose end is not certain is left. `starts` has room for
   room + 128, and at least BP_PADDING bytes after `end` are readable. */
const uint8_t *bp_scan(const bp_scanner *scanner, const uint8_t *base, const uint8_t *at,
                       const uint8_t *end, int last, uint32_t *starts, size_t room, size_t *found);

#endif
