/* Where the chunks of a text begin.

   English text is nearly all ASCII, and there the starts of a whole window of 64 bytes follow from
   a few bit masks: bp_scan uses them for the four patterns of the GPT-2 family. A window begins at
   a known start and is trusted only as far as what comes after it cannot matter, so nothing is
   carried from one window to the next. All else goes chunk by chunk, by the rules (rules.c). */
#include "scan.h"
#include "vector.h"

#include <stdlib.h>
#include <string.h>

#ifdef BP_WINDOW

static inline uint64_t first_of_runs(uint64_t mask) {
    return mask & ~(mask << 1);
}

/* Move starts for the contractions in `candidates`: apostrophes that are starts, before a letter. */
static uint64_t with_contractions(const uint8_t *at, uint64_t starts, uint64_t candidates) {
    while (candidates != 0) {
        int i = __builtin_ctzll(candidates);
        candidates &= candidates - 1;
        size_t length = bp_contraction(at + i, at + 64);
        if (length > 0) {
            starts &= ~(UINT64_C(2) << i);
            starts |= (UINT64_C(1) << i) << length;
        }
    }
    return starts;
}

/* What the bytes of a window belong to, a bit each. */
typedef struct {
    uint64_t words, digits, spaces; /* words: letters, or all of Python's \w */
} kinds;

static inline kinds kinds_of_ascii(bp_pattern pattern, bp_vector v) {
    kinds kind = {bp_bits_between(bp_lower(v), 'a', 'z'), bp_bits_between(v, '0', '9'),
                  bp_bits_between(v, ' ', ' ') | bp_bits_between(v, '\t', '\r')};
    if (pattern != BP_GPT2) { /* Python's \s */
        kind.spaces |= bp_bits_between(v, 0x1C, 0x1F);
    }
    if (pattern == BP_WORDS || pattern == BP_NOTEBOOK) {
        kind.words |= kind.digits | bp_bits_between(v, '_', '_');
    }
    return kind;
}

/* Adds the characters beyond ASCII, all bytes of a character being of its kind. Returns where it
   stops: at white space of several bytes, at what is not UTF-8, at a character that the window cuts
   off, or at 64. */
static int add_beyond_ascii(const bp_scanner *scanner, const uint8_t *at, uint64_t beyond,
                            uint64_t continuing, kinds *kind) {
    kinds found = *kind;
    int i = 64;
    for (; beyond != 0; i = 64) {
        size_t width;
        i = __builtin_ctzll(beyond);
        const int klass = bp_class_at(scanner, at + i, at + 64, &width);
        const uint64_t rest = ((UINT64_C(1) << (width - 1)) - 1) << i << 1;
        if (width == 1 || (continuing & rest) != rest || bp_is_space(klass)) {
            break;
        }
        const uint64_t bytes = rest | UINT64_C(1) << i;
        beyond &= ~bytes;
        found.words |= klass == BP_LETTER ? bytes : 0;
        found.digits |= klass == BP_DIGIT ? bytes : 0;
    }
    *kind = found;
    return i;
}

/* The starts in a window that begins with one. */
static inline uint64_t starts_of(bp_pattern pattern, const uint8_t *at, bp_vector v, kinds kind) {
    const uint64_t blanks = bp_bits_between(v, ' ', ' ');
    uint64_t starts;
    if (pattern == BP_WORDS || pattern == BP_NOTEBOOK) {
        const uint64_t others = ~(kind.words | kind.spaces);
        const uint64_t lone_blanks = blanks & first_of_runs(kind.spaces);
        starts = first_of_runs(kind.spaces) |
                 (~(lone_blanks << 1) & (first_of_runs(kind.words) | first_of_runs(others)));
    } else {
        const uint64_t others = ~(kind.words | kind.digits | kind.spaces);
        starts = first_of_runs(kind.spaces) | (kind.spaces & (~kind.spaces >> 1)) |
                 (~(blanks << 1) & (first_of_runs(kind.words) | first_of_runs(kind.digits) |
                                    first_of_runs(others)));
    }
    starts |= 1;
    if (bp_has_contractions(pattern)) {
        const uint64_t apostrophes = bp_bits_between(v, '\'', '\'') & starts & (kind.words >> 1);
        starts = with_contractions(at, starts, apostrophes & (UINT64_MAX >> 2));
    }
    if (pattern == BP_GPT2_ASCII) { /* more than three digits: trusted up to where they begin */
        const uint64_t four = kind.digits & kind.digits << 1 & kind.digits << 2 & kind.digits << 3;
        if (four != 0) {
            starts &= ((UINT64_C(1) << (__builtin_ctzll(four) - 3)) - 1) << 1 | 1;
        }
    }
    return starts;
}

static uint64_t window_beyond_ascii(const bp_scanner *scanner, const uint8_t *at) {
    const bp_vector v = bp_load64(at);
    const uint64_t beyond = bp_bits_beyond_ascii(v);
    kinds kind = kinds_of_ascii(scanner->pattern, v);
    const int stop = add_beyond_ascii(scanner, at, beyond, beyond & ~bp_bits_between(v, 0xC0, 0xFF),
                                      &kind);
    /* What begins at the byte before depends on what follows it. */
    const uint64_t trusted = stop < 2 ? 1 : (UINT64_C(1) << (stop - 1)) - 1;
    return starts_of(scanner->pattern, at, v, kind) & trusted;
}

/* The starts among the 64 bytes at `at`, itself one, as far as they are certain. */
static inline uint64_t window(const bp_scanner *scanner, const uint8_t *at) {
    const bp_vector v = bp_load64(at);
    if (bp_bits_beyond_ascii(v) != 0) {
        return window_beyond_ascii(scanner, at);
    }
    const kinds kind = kinds_of_ascii(scanner->pattern, v);
    return starts_of(scanner->pattern, at, v, kind) & UINT64_MAX >> 1;
}

/* Writes all starts of the window but the last, which is returned as the next window's beginning.
   Writes eight at a time, up to seven of them too many. */
static inline size_t write_starts(uint64_t starts, uint32_t offset, uint32_t *out) {
    const size_t count = (size_t)__builtin_popcountll(starts);
    do {
        for (int i = 0; i < 8; i++) {
            *out++ = offset + (uint32_t)__builtin_ctzll(starts | UINT64_C(1) << 63);
            starts &= starts - 1;
        }
    } while (starts != 0);
    return count;
}

static inline int has_window(const bp_scanner *scanner) {
    return scanner->pattern <= BP_GPT2;
}

#endif

const uint8_t *bp_scan(const bp_scanner *scanner, const uint8_t *base, const uint8_t *at,
                       const uint8_t *end, int last, uint32_t *starts, size_t room,
                       size_t *found) {
    size_t count = 0;
    while (count < room && at < end) {
#ifdef BP_WINDOW
        if (end - at >= BP_WINDOW && has_window(scanner)) {
            uint64_t mask = window(scanner, at);
            if (mask != 1) {
                int top = 63 - __builtin_clzll(mask);
                count += write_starts(mask ^ UINT64_C(1) << top, (uint32_t)(at - base),
                                      starts + count);
                at += top;
                continue;
            }
        }
#endif
        const uint8_t *stop = scanner->rule(scanner, at, end, last);
        if (!last && end - stop < BP_LOOKAHEAD) {
            break;
        }
        starts[count++] = (uint32_t)(at - base);
        at = stop;
    }
    starts[count] = (uint32_t)(at - base);
    *found = count;
    return at;
}

/* The byte before the first of a character that ends before `at`; not before `text`. */
static const uint8_t *character_before(const uint8_t *text, const uint8_t *at) {
    const uint8_t *first = at - 1;
    while (first > text && at - first < 4 && (*first & 0xC0) == 0x80) {
        first--;
    }
    return first;
}

/* No pattern has an alternative in which white space follows a letter or a digit. */
size_t bp_safe_cut(const bp_scanner *scanner, const uint8_t *text, size_t size) {
    for (size_t cut = size; cut-- > 1;) {
        if (text[cut] == ' ' || text[cut] == '\n') {
            size_t width;
            const uint8_t *at = text + cut, *before = character_before(text, at);
            int klass = bp_class_at(scanner, before, at, &width);
            if (klass != BP_OTHER && klass != BP_MARK && !bp_is_space(klass)) {
                return cut;
            }
        }
    }
    return 0;
}

/* ---- a scanner ------------------------------------------------------------------------------ */

/* The rules take any class that they do not know for white space. */
static int knows_class(bp_pattern pattern, uint32_t klass) {
    return klass <= BP_LINE && (pattern == BP_O200K || klass < BP_UPPER || klass > BP_MARK);
}

static bp_status classes_init(bp_scanner *scanner, const bp_range *ranges, size_t count) {
    uint8_t *flat = calloc(0x110000, 1);
    uint8_t *blocks = malloc(256 * 256);
    size_t used = 0;
    if (flat == NULL || blocks == NULL) {
        free(flat);
        free(blocks);
        return BP_NO_MEMORY;
    }
    bp_status status = BP_OK;
    for (size_t i = 0; i < count && status == BP_OK; i++) {
        const bp_range *range = &ranges[i];
        if (range->first > range->last || range->last > 0x10FFFF ||
            !knows_class(scanner->pattern, range->klass)) {
            status = BP_BAD_INPUT;
        } else {
            memset(flat + range->first, (int)range->klass, range->last - range->first + 1);
        }
    }
    for (size_t b = 0; b < 0x1100 && status == BP_OK; b++) {
        size_t same = 0;
        while (same < used && memcmp(blocks + 256 * same, flat + 256 * b, 256) != 0) {
            same++;
        }
        if (same == 256) {
            status = BP_TOO_LARGE;
        } else {
            if (same == used) {
                memcpy(blocks + 256 * used++, flat + 256 * b, 256);
            }
            scanner->block[b] = (uint8_t)same;
        }
    }
    free(flat);
    if (status != BP_OK) {
        free(blocks);
        return status;
    }
    scanner->classes = blocks;
    return BP_OK;
}

bp_status bp_scanner_new(bp_pattern pattern, const bp_range *ranges, size_t count,
                         bp_scanner **made) {
    bp_rule rule = bp_rule_of(pattern);
    if (rule == NULL) {
        return BP_BAD_INPUT;
    }
    bp_scanner *scanner = calloc(1, sizeof *scanner);
    if (scanner == NULL) {
        return BP_NO_MEMORY;
    }
    scanner->pattern = pattern;
    scanner->rule = rule;
    bp_status status = classes_init(scanner, ranges, count);
    if (status != BP_OK) {
        free(scanner);
        return status;
    }
    memcpy(scanner->ascii, scanner->classes + 256u * scanner->block[0], sizeof scanner->ascii);
    *made = scanner;
    return BP_OK;
}

void bp_scanner_free(bp_scanner *scanner) {
    if (scanner != NULL) {
        free(scanner->classes);
        free(scanner);
    }
}
