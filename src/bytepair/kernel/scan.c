/* Where chunks begin.

   Each pattern has one function that finds the end of the chunk beginning at a place, written along
   the alternatives of its regular expression. It is exact for any text, but takes 10 ns a chunk.
   English text is nearly all ASCII, and there the starts of a whole window of 64 bytes follow from
   a few bit masks: bp_scan uses them for the four patterns of the GPT-2 family. A window begins at
   a known start and is trusted only as far as what comes after it cannot matter, so nothing is
   carried from one window to the next. */
#include "scan.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#define BP_WINDOW 64
#endif

static int has_contractions(bp_pattern pattern) {
    return pattern != BP_WORDS;
}

/* ---- classes -------------------------------------------------------------------------------- */

static bp_status classes_init(bp_classes *table, const bp_range *ranges, size_t count) {
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
        if (range->first > range->last || range->last > 0x10FFFF || range->klass > BP_LINE) {
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
            table->block[b] = (uint8_t)same;
        }
    }
    free(flat);
    if (status != BP_OK) {
        free(blocks);
        return status;
    }
    table->classes = blocks;
    return BP_OK;
}

/* The class of the character at `at`, and its length in bytes. What is not UTF-8 is one byte of
   class OTHER: callers check their text, this only must not read past `end`. */
static inline int class_at(const bp_scanner *scanner, const uint8_t *at, const uint8_t *end,
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
    return scanner->table.classes[256u * scanner->table.block[code >> 8] + (code & 255)];
}

static inline int is_space(int klass) {
    return klass >= BP_SPACE;
}

/* ---- the end of one chunk ------------------------------------------------------------------- */

/* The length of 's 't 'd 'm 'll 've 're after an apostrophe at `at`, else 0. */
static size_t contraction(const uint8_t *at, const uint8_t *end) {
    if (end - at >= 2 && (at[1] == 's' || at[1] == 't' || at[1] == 'd' || at[1] == 'm')) {
        return 2;
    }
    if (end - at >= 3 && ((at[1] == 'l' && at[2] == 'l') ||
                          ((at[1] == 'v' || at[1] == 'r') && at[2] == 'e'))) {
        return 3;
    }
    return 0;
}

/* The same in either case; U+017F, the long s, is an s to every engine that ignores case. */
static size_t contraction_any_case(const uint8_t *at, const uint8_t *end) {
    ptrdiff_t left = end - at;
    if (left >= 3 && at[1] == 0xC5 && at[2] == 0xBF) {
        return 3;
    }
    uint8_t folded[3] = {'\'', 0, 0};
    for (ptrdiff_t i = 1; i < 3 && i < left; i++) {
        folded[i] = at[i] >= 'A' && at[i] <= 'Z' ? (uint8_t)(at[i] + 32) : at[i];
    }
    return contraction(folded, folded + (left < 3 ? left : 3));
}

/* After the last character of class `klass`, at most `limit` of them. */
static const uint8_t *run_end(const bp_scanner *scanner, const uint8_t *at, const uint8_t *end,
                              int klass, size_t limit) {
    size_t width;
    while (at < end && limit > 0 && class_at(scanner, at, end, &width) == klass) {
        at += width;
        limit--;
    }
    return at;
}

/* White space to its end; `*final` is where its last character begins, `*line` is after its last
   CR or LF, or NULL. */
static const uint8_t *space_end(const bp_scanner *scanner, const uint8_t *at, const uint8_t *end,
                                const uint8_t **final, const uint8_t **line) {
    size_t width;
    *line = NULL;
    *final = at;
    while (at < end) {
        int klass = class_at(scanner, at, end, &width);
        if (!is_space(klass)) {
            break;
        }
        *final = at;
        at += width;
        if (klass == BP_LINE) {
            *line = at;
        }
    }
    return at;
}

/* gpt2, gpt2-ascii, words, notebook:
   contractions (not words) | ?LETTER+ | ?DIGIT+ (gpt2-ascii: up to three) | ?OTHER+ |
   white space, without its last character if something follows (words, notebook: all of it) */
static const uint8_t *gpt2_end(const bp_scanner *scanner, const uint8_t *at, const uint8_t *end) {
    if (at[0] == '\'' && has_contractions(scanner->pattern)) {
        size_t length = contraction(at, end);
        if (length > 0) {
            return at + length;
        }
    }
    size_t width;
    const uint8_t *word = at;
    int klass = class_at(scanner, at, end, &width);
    if (at[0] == ' ' && at + 1 < end) {
        int next = class_at(scanner, at + 1, end, &width);
        if (!is_space(next)) {
            klass = next;
            word = at + 1;
        }
    }
    if (!is_space(klass)) {
        int few = klass == BP_DIGIT && scanner->pattern == BP_GPT2_ASCII;
        return run_end(scanner, word, end, klass, few ? 3 : SIZE_MAX);
    }
    const uint8_t *final, *line;
    const uint8_t *stop = space_end(scanner, at, end, &final, &line);
    int whole = scanner->pattern == BP_WORDS || scanner->pattern == BP_NOTEBOOK;
    return whole || stop == end || final == at ? stop : final;
}

/* White space as cl100k and o200k cut it: to the end of the text (cl100k: all of it), through the
   last line end, without its last character if something follows, or that one character. */
static const uint8_t *gpt4_space_end(const bp_scanner *scanner, const uint8_t *at,
                                     const uint8_t *end) {
    const uint8_t *final, *line;
    const uint8_t *stop = space_end(scanner, at, end, &final, &line);
    if (stop == end && scanner->pattern == BP_CL100K) {
        return stop;
    }
    if (line != NULL) {
        return line;
    }
    return stop == end || final == at ? stop : final;
}

/* ` ?OTHER+` and the line ends (o200k: and slashes) after it; `at` is at a space or at OTHER. To
   this alternative a mark is one of OTHER. */
static const uint8_t *other_end(const bp_scanner *scanner, const uint8_t *at, const uint8_t *end) {
    size_t width = 1;
    int klass = BP_OTHER;
    do {
        at += width;
        klass = at < end ? class_at(scanner, at, end, &width) : BP_SPACE;
    } while (klass == BP_OTHER || klass == BP_MARK);
    while (at < end && (at[0] == '\r' || at[0] == '\n' ||
                        (at[0] == '/' && scanner->pattern == BP_O200K))) {
        at++;
    }
    return at;
}

static inline int is_word(int klass) {
    return klass >= BP_LETTER && klass <= BP_MARK && klass != BP_DIGIT;
}

/* contractions | [not CR, LF, letter, digit]?LETTER+ | DIGIT{1,3} | ?OTHER+ CR LF * | white space */
static const uint8_t *cl100k_end(const bp_scanner *scanner, const uint8_t *at,
                                 const uint8_t *end) {
    size_t width, next_width;
    if (at[0] == '\'') {
        size_t length = contraction_any_case(at, end);
        if (length > 0) {
            return at + length;
        }
    }
    int klass = class_at(scanner, at, end, &width);
    if (klass == BP_LETTER) {
        return run_end(scanner, at, end, BP_LETTER, SIZE_MAX);
    }
    if (klass == BP_DIGIT) {
        return run_end(scanner, at, end, BP_DIGIT, 3);
    }
    int next = at + width < end ? class_at(scanner, at + width, end, &next_width) : BP_SPACE;
    if (klass != BP_LINE && next == BP_LETTER) {
        return run_end(scanner, at + width, end, BP_LETTER, SIZE_MAX);
    }
    if (klass == BP_OTHER || (at[0] == ' ' && next == BP_OTHER)) {
        return other_end(scanner, at, end);
    }
    return gpt4_space_end(scanner, at, end);
}

/* A word of o200k from `at`: UPPER* LOWER+ or UPPER+ LOWER*, where LETTER (Lm, Lo) and MARK are
   both; with a contraction after it. NULL if there is none.

   The first alternative takes the longest run of UPPER or LETTER and gives back until a LOWER or
   LETTER follows: so it is that run and all LOWER or LETTER after it, or, if no LOWER follows, as
   far as the run's last LETTER. The second alternative is left with a run of UPPER alone. */
static const uint8_t *o200k_word(const bp_scanner *scanner, const uint8_t *at,
                                 const uint8_t *end) {
    const uint8_t *stop = at, *last_letter = NULL;
    size_t width;
    int klass = BP_OTHER;
    while (stop < end) {
        klass = class_at(scanner, stop, end, &width);
        if (!is_word(klass) || klass == BP_LOWER) {
            break;
        }
        stop += width;
        if (klass != BP_UPPER) {
            last_letter = stop;
        }
    }
    if (stop < end && klass == BP_LOWER) {
        while (stop < end) {
            klass = class_at(scanner, stop, end, &width);
            if (!is_word(klass) || klass == BP_UPPER) {
                break;
            }
            stop += width;
        }
    } else if (last_letter != NULL) {
        stop = last_letter;
    } else if (stop == at) {
        return NULL;
    }
    if (stop < end && stop[0] == '\'') {
        stop += contraction_any_case(stop, end);
    }
    return stop;
}

/* [not CR, LF, letter, digit]? WORD | DIGIT{1,3} | ?OTHER+ [CR LF /]* | white space.
   A mark may be the leading character or begin the word: the end is the same. */
static const uint8_t *o200k_end(const bp_scanner *scanner, const uint8_t *at,
                                const uint8_t *end) {
    size_t width;
    int klass = class_at(scanner, at, end, &width);
    if (klass == BP_DIGIT) {
        return run_end(scanner, at, end, BP_DIGIT, 3);
    }
    if (is_word(klass)) {
        return o200k_word(scanner, at, end);
    }
    if (klass != BP_LINE && at + width < end) {
        const uint8_t *stop = o200k_word(scanner, at + width, end);
        if (stop != NULL) {
            return stop;
        }
    }
    size_t next_width;
    int next = at + width < end ? class_at(scanner, at + width, end, &next_width) : BP_SPACE;
    if (klass == BP_OTHER || (at[0] == ' ' && next == BP_OTHER)) {
        return other_end(scanner, at, end);
    }
    return gpt4_space_end(scanner, at, end);
}

/* ---- many chunks ---------------------------------------------------------------------------- */

#ifdef BP_WINDOW

/* A bit for each of 64 bytes, from the first. */
static inline uint64_t bits(const __m128i v[4]) {
    uint64_t mask = 0;
    for (int i = 3; i >= 0; i--) {
        mask = mask << 16 | (uint32_t)_mm_movemask_epi8(v[i]);
    }
    return mask;
}

static inline uint64_t bits_between(const __m128i v[4], uint8_t first, uint8_t last) {
    const __m128i low = _mm_set1_epi8((char)first), span = _mm_set1_epi8((char)(last - first));
    __m128i inside[4];
    for (int i = 0; i < 4; i++) {
        __m128i offset = _mm_sub_epi8(v[i], low);
        inside[i] = _mm_cmpeq_epi8(_mm_min_epu8(offset, span), offset);
    }
    return bits(inside);
}

static inline uint64_t first_of_runs(uint64_t mask) {
    return mask & ~(mask << 1);
}

/* Move starts for the contractions in `candidates`: apostrophes that are starts, before a letter. */
static uint64_t with_contractions(const uint8_t *at, uint64_t starts, uint64_t candidates) {
    while (candidates != 0) {
        int i = __builtin_ctzll(candidates);
        candidates &= candidates - 1;
        size_t length = contraction(at + i, at + 64);
        if (length > 0) {
            starts &= ~(UINT64_C(2) << i);
            starts |= (UINT64_C(1) << i) << length;
        }
    }
    return starts;
}

/* The starts among the 64 bytes at `at`, itself one, as far as they are certain. */
static inline uint64_t window(const bp_scanner *scanner, const uint8_t *at) {
    const bp_pattern pattern = scanner->pattern;
    __m128i v[4], lower[4];
    for (int i = 0; i < 4; i++) {
        v[i] = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
        lower[i] = _mm_or_si128(v[i], _mm_set1_epi8(0x20));
    }
    const uint64_t beyond_ascii = bits(v);
    const uint64_t letters = bits_between(lower, 'a', 'z');
    const uint64_t digits = bits_between(v, '0', '9');
    const uint64_t blanks = bits_between(v, ' ', ' ');
    uint64_t spaces = blanks | bits_between(v, '\t', '\r');
    uint64_t words = letters, starts;
    if (pattern != BP_GPT2) { /* Python's \s */
        spaces |= bits_between(v, 0x1C, 0x1F);
    }
    if (pattern == BP_WORDS || pattern == BP_NOTEBOOK) { /* Python's \w */
        words |= digits | bits_between(v, '_', '_');
        const uint64_t others = ~(words | spaces);
        const uint64_t lone_blanks = blanks & first_of_runs(spaces);
        starts = first_of_runs(spaces) |
                 (~(lone_blanks << 1) & (first_of_runs(words) | first_of_runs(others)));
    } else {
        const uint64_t others = ~(words | digits | spaces);
        starts = first_of_runs(spaces) | (spaces & (~spaces >> 1)) |
                 (~(blanks << 1) &
                  (first_of_runs(words) | first_of_runs(digits) | first_of_runs(others)));
    }
    starts |= 1;
    uint64_t trusted = UINT64_MAX >> 1; /* whether byte 63 ends white space only byte 64 tells */
    if (beyond_ascii != 0) { /* nor what the byte before a character beyond ASCII begins */
        int first = __builtin_ctzll(beyond_ascii);
        trusted = first < 2 ? 1 : (UINT64_C(1) << (first - 1)) - 1;
    }
    if (has_contractions(pattern)) {
        const uint64_t apostrophes = bits_between(v, '\'', '\'') & starts & (letters >> 1);
        starts = with_contractions(at, starts, apostrophes & (UINT64_MAX >> 2));
    }
    if (pattern == BP_GPT2_ASCII) { /* more than three digits: trusted up to where they begin */
        const uint64_t four = digits & digits << 1 & digits << 2 & digits << 3;
        if (four != 0) {
            uint64_t before = (UINT64_C(1) << (__builtin_ctzll(four) - 3)) - 1;
            trusted &= before << 1 | 1;
        }
    }
    return starts & trusted;
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
        /* One chunk by the rule; then on, as long as there are characters beyond ASCII. */
        do {
            const uint8_t *stop = scanner->chunk_end(scanner, at, end);
            if (!last && end - stop < BP_LOOKAHEAD) {
                goto done;
            }
            starts[count++] = (uint32_t)(at - base);
            at = stop;
        } while (count < room && at < end && (at[0] >= 0x80 || at[1] >= 0x80));
    }
done:
    starts[count] = (uint32_t)(at - base);
    *found = count;
    return at;
}

/* ---- a scanner ------------------------------------------------------------------------------ */

bp_status bp_scanner_init(bp_scanner *scanner, bp_pattern pattern, const bp_range *ranges,
                          size_t count) {
    memset(scanner, 0, sizeof *scanner);
    scanner->pattern = pattern;
    switch (pattern) {
    case BP_WORDS:
    case BP_NOTEBOOK:
    case BP_GPT2_ASCII:
    case BP_GPT2:
        scanner->chunk_end = gpt2_end;
        break;
    case BP_CL100K:
        scanner->chunk_end = cl100k_end;
        break;
    case BP_O200K:
        scanner->chunk_end = o200k_end;
        break;
    default:
        return BP_BAD_INPUT;
    }
    bp_status status = classes_init(&scanner->table, ranges, count);
    if (status == BP_OK) {
        memcpy(scanner->ascii, scanner->table.classes + 256u * scanner->table.block[0], 128);
    }
    return status;
}

void bp_scanner_free(bp_scanner *scanner) {
    free(scanner->table.classes);
    scanner->table.classes = NULL;
}
