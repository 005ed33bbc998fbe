/* The six patterns as their regular expressions say it: items that match backtracking, each over a
   test of one character. With a few scripts' classes, which the scanners are made of too. */
#ifndef BYTEPAIR_SLOW_SCAN_H
#define BYTEPAIR_SLOW_SCAN_H

#include "../scan.h"
#include "slow_utf8.h"

/* ---- characters ---- */

typedef struct {
    uint32_t first, last;
    char category; /* L letter of no case, U upper or title, l lower, N number, M mark, S space, or P */
} script;

static const script scripts[] = {
    {'\t', '\r', 'S'},          {0x1C, 0x1F, 'P'},          {' ', ' ', 'S'},
    {'0', '9', 'N'},            {'A', 'Z', 'U'},            {'a', 'z', 'l'},
    {0x85, 0x85, 'S'},          {0xA0, 0xA0, 'S'},          {0xB2, 0xB3, 'N'},
    {0xC0, 0xD6, 'U'},          {0xDF, 0xF6, 'l'},          {0x17F, 0x17F, 'l'},
    {0x1C5, 0x1C5, 'U'},        {0x2B0, 0x2B8, 'L'},        {0x300, 0x36F, 'M'},
    {0x391, 0x3A1, 'U'},        {0x3B1, 0x3C9, 'l'},        {0x660, 0x669, 'N'},
    {0x2000, 0x200A, 'S'},      {0x2028, 0x2029, 'S'},      {0x3000, 0x3000, 'S'},
    {0x4E00, 0x9FFF, 'L'},      {0xFE00, 0xFE0F, 'M'},      {0x10400, 0x10427, 'U'},
    {0x10428, 0x1044F, 'l'},    {0x1D165, 0x1D169, 'M'},    {0x1D7CE, 0x1D7FF, 'N'},
    {0x20000, 0x2A6DF, 'L'},    {0x10FFFF, 0x10FFFF, 'L'},
};
enum { SCRIPTS = sizeof scripts / sizeof *scripts, MOST_RANGES = SCRIPTS + 3 };

static char category_of(uint32_t code) {
    for (size_t i = 0; i < SCRIPTS; i++) {
        if (code >= scripts[i].first && code <= scripts[i].last) {
            return scripts[i].category;
        }
    }
    return 'P';
}

static bool is_blank(uint32_t code) { return code == ' '; }
static bool is_line_end(uint32_t code) { return code == '\r' || code == '\n'; }
static bool is_line_end_or_slash(uint32_t code) { return is_line_end(code) || code == '/'; }
static bool is_letter(uint32_t code) { return strchr("ULl", category_of(code)) != NULL; }
static bool is_number(uint32_t code) { return category_of(code) == 'N'; }
static bool is_space(uint32_t code) { return category_of(code) == 'S'; }
static bool is_other(uint32_t code) {
    return !is_letter(code) && !is_number(code) && !is_space(code);
}
static bool is_before_word(uint32_t code) {
    return !is_letter(code) && !is_number(code) && !is_line_end(code);
}
static bool is_like_upper(uint32_t code) { return strchr("ULM", category_of(code)) != NULL; }
static bool is_like_lower(uint32_t code) { return strchr("lLM", category_of(code)) != NULL; }
static bool is_python_space(uint32_t code) { return is_space(code) || (code >= 0x1C && code <= 0x1F); }
static bool is_python_word(uint32_t code) {
    return is_letter(code) || is_number(code) || code == '_';
}
static bool is_python_other(uint32_t code) { return !is_python_space(code) && !is_python_word(code); }
static bool is_ascii_letter(uint32_t code) { return code < 0x80 && is_letter(code); }
static bool is_ascii_digit(uint32_t code) { return code < 0x80 && is_number(code); }
static bool is_ascii_other(uint32_t code) {
    return !is_python_space(code) && !is_ascii_letter(code) && !is_ascii_digit(code);
}

/* ---- patterns ---- */

enum { MANY = 1 << 30, CONTRACTION = -1, ANY_CASE = -2, AT_END = -3, NOT_BEFORE_WORD = -4 };

/* A test and how often, greedily; or none of both, and in `most` what else it is. */
typedef struct {
    bool (*is)(uint32_t);
    int least, most;
} item;

enum { MOST_ITEMS = 5, MOST_ALTERNATIVES = 8, PATTERNS = BP_O200K + 1 };
typedef item alternative[MOST_ITEMS];

#define BLANK {is_blank, 0, 1}

static const alternative patterns[PATTERNS][MOST_ALTERNATIVES] = {
    [BP_WORDS] = {{BLANK, {is_python_word, 1, MANY}},
                  {BLANK, {is_python_other, 1, MANY}},
                  {{is_python_space, 1, MANY}}},
    [BP_NOTEBOOK] = {{{NULL, 1, CONTRACTION}},
                     {BLANK, {is_python_word, 1, MANY}},
                     {BLANK, {is_python_other, 1, MANY}},
                     {{is_python_space, 1, MANY}}},
    [BP_GPT2_ASCII] = {{{NULL, 1, CONTRACTION}},
                       {BLANK, {is_ascii_letter, 1, MANY}},
                       {BLANK, {is_ascii_digit, 1, 3}},
                       {BLANK, {is_ascii_other, 1, MANY}},
                       {{is_python_space, 1, MANY}, {NULL, 1, NOT_BEFORE_WORD}},
                       {{is_python_space, 1, MANY}}},
    [BP_GPT2] = {{{NULL, 1, CONTRACTION}},
                 {BLANK, {is_letter, 1, MANY}},
                 {BLANK, {is_number, 1, MANY}},
                 {BLANK, {is_other, 1, MANY}},
                 {{is_space, 1, MANY}, {NULL, 1, NOT_BEFORE_WORD}},
                 {{is_space, 1, MANY}}},
    [BP_CL100K] = {{{NULL, 1, ANY_CASE}},
                   {{is_before_word, 0, 1}, {is_letter, 1, MANY}},
                   {{is_number, 1, 3}},
                   {BLANK, {is_other, 1, MANY}, {is_line_end, 0, MANY}},
                   {{is_space, 1, MANY}, {NULL, 1, AT_END}},
                   {{is_space, 0, MANY}, {is_line_end, 1, 1}},
                   {{is_space, 1, MANY}, {NULL, 1, NOT_BEFORE_WORD}},
                   {{is_space, 1, 1}}},
    [BP_O200K] = {{{is_before_word, 0, 1},
                   {is_like_upper, 0, MANY},
                   {is_like_lower, 1, MANY},
                   {NULL, 0, ANY_CASE}},
                  {{is_before_word, 0, 1},
                   {is_like_upper, 1, MANY},
                   {is_like_lower, 0, MANY},
                   {NULL, 0, ANY_CASE}},
                  {{is_number, 1, 3}},
                  {BLANK, {is_other, 1, MANY}, {is_line_end_or_slash, 0, MANY}},
                  {{is_space, 0, MANY}, {is_line_end, 1, MANY}},
                  {{is_space, 1, MANY}, {NULL, 1, NOT_BEFORE_WORD}},
                  {{is_space, 1, MANY}}},
};

/* The class that the scanner of a pattern gives to a script. */
static uint32_t class_of(bp_pattern pattern, const script *of) {
    const bool is_ascii = of->last < 0x80;
    switch (of->category) {
    case 'N':
        return pattern <= BP_NOTEBOOK                  ? BP_LETTER
               : pattern == BP_GPT2_ASCII && !is_ascii ? BP_OTHER
                                                       : BP_DIGIT;
    case 'M':
        return pattern == BP_O200K ? BP_MARK : BP_OTHER;
    case 'S':
        return BP_SPACE;
    case 'P':
        return pattern <= BP_GPT2_ASCII ? BP_SPACE : BP_OTHER; /* U+001C to U+001F */
    default:
        return pattern == BP_GPT2_ASCII && !is_ascii ? BP_OTHER
               : pattern != BP_O200K || of->category == 'L' ? BP_LETTER
               : of->category == 'U'                        ? BP_UPPER
                                                            : BP_LOWER;
    }
}

/* As the scanner of a pattern wants them; `ranges` has room for MOST_RANGES. */
static size_t class_ranges(bp_pattern pattern, bp_range *ranges) {
    size_t number = 0;
    for (; number < SCRIPTS; number++) {
        const script *of = &scripts[number];
        ranges[number] = (bp_range){of->first, of->last, class_of(pattern, of)};
    }
    if (pattern <= BP_NOTEBOOK) {
        ranges[number++] = (bp_range){'_', '_', BP_LETTER};
    }
    if (pattern >= BP_CL100K) {
        ranges[number++] = (bp_range){'\n', '\n', BP_LINE};
        ranges[number++] = (bp_range){'\r', '\r', BP_LINE};
    }
    return number;
}

/* The scanner of a pattern, made once. */
static const bp_scanner *known_scanner(uint64_t number) {
    static bp_scanner *known[PATTERNS];
    const bp_pattern pattern = (bp_pattern)(number % PATTERNS);
    if (known[pattern] == NULL) {
        bp_range ranges[MOST_RANGES];
        CHECK(bp_scanner_new(pattern, ranges, class_ranges(pattern, ranges), &known[pattern]) ==
              BP_OK);
        held = 0; /* since it stays */
    }
    return known[pattern];
}

/* ---- matching; the text is UTF-8 ---- */

static uint32_t code_at(const uint8_t *at, const uint8_t *end, size_t *length) {
    uint32_t code = 0;
    *length = slow_character(at, end, &code);
    CHECK(*length > 0);
    return code;
}

static size_t match_contraction(const uint8_t *at, const uint8_t *end, bool any_case) {
    static const char *const known[] = {"'s", "'t", "'d", "'m", "'ll", "'ve", "'re"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t letter = 0, offset = 0, length;
        for (; known[i][letter] != 0 && at + offset < end; letter++, offset += length) {
            uint32_t code = code_at(at + offset, end, &length);
            if (any_case && code >= 'A' && code <= 'Z') {
                code += 'a' - 'A';
            }
            if (any_case && code == 0x17F) { /* the long s */
                code = 's';
            }
            if (code != (uint32_t)known[i][letter]) {
                break;
            }
        }
        if (known[i][letter] == 0) {
            return offset;
        }
    }
    return 0;
}

static const uint8_t *match(const item *items, size_t number, const uint8_t *at, const uint8_t *end);

static const uint8_t *match_special(const item *items, size_t number, const uint8_t *at,
                                    const uint8_t *end) {
    const item *first = items;
    size_t length;
    if (first->most == AT_END) {
        return at == end ? match(items + 1, number - 1, at, end) : NULL;
    }
    if (first->most == NOT_BEFORE_WORD) { /* the white space before it says which white space */
        const bool is_followed = at < end && !first[-1].is(code_at(at, end, &length));
        return is_followed ? NULL : match(items + 1, number - 1, at, end);
    }
    length = match_contraction(at, end, first->most == ANY_CASE);
    return length == 0 && first->least > 0 ? NULL : match(items + 1, number - 1, at + length, end);
}

/* The end of the first match of all items that backtracking finds, or NULL. */
static const uint8_t *match(const item *items, size_t number, const uint8_t *at,
                            const uint8_t *end) {
    if (number == 0 || items->most == 0) {
        return at;
    }
    if (items->is == NULL) {
        return match_special(items, number, at, end);
    }
    int times = 0;
    size_t length;
    while (at < end && times < items->most && items->is(code_at(at, end, &length))) {
        at += length;
        times++;
    }
    for (;;) {
        const uint8_t *stop = times < items->least ? NULL : match(items + 1, number - 1, at, end);
        if (stop != NULL || times <= items->least) {
            return stop;
        }
        times--;
        do { /* one character back */
            at--;
        } while ((*at & 0xC0) == 0x80);
    }
}

static const uint8_t *slow_chunk_end(bp_pattern pattern, const uint8_t *at, const uint8_t *end) {
    const uint8_t *stop = NULL;
    for (size_t i = 0; i < MOST_ALTERNATIVES && stop == NULL; i++) {
        const item *items = patterns[pattern][i];
        stop = items->most == 0 ? NULL : match(items, MOST_ITEMS, at, end);
    }
    CHECK(stop > at); /* no character is in no chunk */
    return stop;
}

#endif
