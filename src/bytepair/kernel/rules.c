/* The end of one chunk: each pattern has a function written along the alternatives of its regular
   expression. Exact for any text, in some 10 ns a chunk. */
#include "scan.h"

size_t bp_contraction(const uint8_t *at, const uint8_t *end) {
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
    return bp_contraction(folded, folded + (left < 3 ? left : 3));
}

/* After the last character of class `klass`, at most `limit` of them. */
static const uint8_t *run_end(const bp_scanner *scanner, const uint8_t *at, const uint8_t *end,
                              int klass, size_t limit) {
    size_t width;
    while (at < end && limit > 0 && bp_class_at(scanner, at, end, &width) == klass) {
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
        int klass = bp_class_at(scanner, at, end, &width);
        if (!bp_is_space(klass)) {
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
static const uint8_t *gpt2_end(const bp_scanner *scanner, const uint8_t *at, const uint8_t *end,
                               int last) {
    (void)last;
    if (at[0] == '\'' && bp_has_contractions(scanner->pattern)) {
        size_t length = bp_contraction(at, end);
        if (length > 0) {
            return at + length;
        }
    }
    size_t width;
    const uint8_t *word = at;
    int klass = bp_class_at(scanner, at, end, &width);
    if (at[0] == ' ' && at + 1 < end) {
        int next = bp_class_at(scanner, at + 1, end, &width);
        if (!bp_is_space(next)) {
            klass = next;
            word = at + 1;
        }
    }
    if (!bp_is_space(klass)) {
        int few = klass == BP_DIGIT && scanner->pattern == BP_GPT2_ASCII;
        return run_end(scanner, word, end, klass, few ? 3 : SIZE_MAX);
    }
    const uint8_t *final, *line;
    const uint8_t *stop = space_end(scanner, at, end, &final, &line);
    int whole = scanner->pattern == BP_WORDS || scanner->pattern == BP_NOTEBOOK;
    return whole || stop == end || final == at ? stop : final;
}

/* Whether more text may make a run longer that stops at `stop`: there, or in a character of which
   `end` cuts off a part. */
static inline int may_go_on(const uint8_t *stop, const uint8_t *end, int last) {
    return !last && end - stop < 4;
}

/* White space as cl100k and o200k cut it: to the end of the text (cl100k: all of it), through the
   last line end, without its last character if something follows, or that one character. */
static const uint8_t *gpt4_space_end(const bp_scanner *scanner, const uint8_t *at,
                                     const uint8_t *end, int last) {
    const uint8_t *final, *line;
    const uint8_t *stop = space_end(scanner, at, end, &final, &line);
    if (may_go_on(stop, end, last)) { /* to a later line end */
        return end;
    }
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
        klass = at < end ? bp_class_at(scanner, at, end, &width) : BP_SPACE;
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
                                 const uint8_t *end, int last) {
    size_t width, next_width;
    if (at[0] == '\'') {
        size_t length = contraction_any_case(at, end);
        if (length > 0) {
            return at + length;
        }
    }
    int klass = bp_class_at(scanner, at, end, &width);
    if (klass == BP_LETTER) {
        return run_end(scanner, at, end, BP_LETTER, SIZE_MAX);
    }
    if (klass == BP_DIGIT) {
        return run_end(scanner, at, end, BP_DIGIT, 3);
    }
    int next = at + width < end ? bp_class_at(scanner, at + width, end, &next_width) : BP_SPACE;
    if (klass != BP_LINE && next == BP_LETTER) {
        return run_end(scanner, at + width, end, BP_LETTER, SIZE_MAX);
    }
    if (klass == BP_OTHER || (at[0] == ' ' && next == BP_OTHER)) {
        return other_end(scanner, at, end);
    }
    return gpt4_space_end(scanner, at, end, last);
}

/* A word of o200k from `at`: UPPER* LOWER+ or UPPER+ LOWER*, where LETTER (Lm, Lo) and MARK are
   both; with a contraction after it. NULL if there is none.

   The first alternative takes the longest run of UPPER or LETTER and gives back until a LOWER or
   LETTER follows: so it is that run and all LOWER or LETTER after it, or, if no LOWER follows, as
   far as the run's last LETTER. The second alternative is left with a run of UPPER alone. */
static const uint8_t *o200k_word(const bp_scanner *scanner, const uint8_t *at,
                                 const uint8_t *end, int last) {
    const uint8_t *stop = at, *last_letter = NULL;
    size_t width;
    int klass = BP_OTHER;
    while (stop < end) {
        klass = bp_class_at(scanner, stop, end, &width);
        if (!is_word(klass) || klass == BP_LOWER) {
            break;
        }
        stop += width;
        if (klass != BP_UPPER) {
            last_letter = stop;
        }
    }
    if (may_go_on(stop, end, last)) { /* to a LOWER */
        return end;
    }
    if (stop < end && klass == BP_LOWER) {
        while (stop < end) {
            klass = bp_class_at(scanner, stop, end, &width);
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
                                const uint8_t *end, int last) {
    size_t width;
    int klass = bp_class_at(scanner, at, end, &width);
    if (klass == BP_DIGIT) {
        return run_end(scanner, at, end, BP_DIGIT, 3);
    }
    if (is_word(klass)) {
        return o200k_word(scanner, at, end, last);
    }
    if (klass != BP_LINE && at + width < end) {
        const uint8_t *stop = o200k_word(scanner, at + width, end, last);
        if (stop != NULL) {
            return stop;
        }
    }
    size_t next_width;
    int next = at + width < end ? bp_class_at(scanner, at + width, end, &next_width) : BP_SPACE;
    if (klass == BP_OTHER || (at[0] == ' ' && next == BP_OTHER)) {
        return other_end(scanner, at, end);
    }
    return gpt4_space_end(scanner, at, end, last);
}

bp_rule bp_rule_of(bp_pattern pattern) {
    switch (pattern) {
    case BP_WORDS:
    case BP_NOTEBOOK:
    case BP_GPT2_ASCII:
    case BP_GPT2:
        return gpt2_end;
    case BP_CL100K:
        return cl100k_end;
    case BP_O200K:
        return o200k_end;
    }
    return NULL;
}
