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
   look-ahead is one character, or a contraction of three bytes. */
#define BP_LOOKAHEAD 8

/* Bytes after the end of the text that must be readable: a window is loaded whole. */
#define BP_PADDING 64

/* Two stages: the block of a code point, then its class in the block. */
typedef struct {
    uint8_t block[0x1100];
    uint8_t *classes; /* 256 a block */
} bp_classes;

typedef struct bp_scanner bp_scanner;
struct bp_scanner {
    bp_pattern pattern;
    bp_classes table;
    uint8_t ascii[128];
    /* The end of the chunk that begins at `at`, which is before `end`. */
    const uint8_t *(*chunk_end)(const bp_scanner *, const uint8_t *at, const uint8_t *end);
};

bp_status bp_scanner_init(bp_scanner *scanner, bp_pattern pattern, const bp_range *ranges,
                          size_t count);
void bp_scanner_free(bp_scanner *scanner);

/* Writes the starts of up to `room` chunks of [at, end), relative to `base`, and returns where it
   stopped, which is the start of the next chunk and is written after the last. If `last` is zero
   more text follows, and a chunk whose end is not certain is left. `starts` has room for
   room + 128, and at least BP_PADDING bytes after `end` are readable. */
const uint8_t *bp_scan(const bp_scanner *scanner, const uint8_t *base, const uint8_t *at,
                       const uint8_t *end, int last, uint32_t *starts, size_t room, size_t *found);

#endif
