/* UTF-8 by the table: which bytes may follow which (table 3-7 of the Unicode Standard). */
#ifndef BYTEPAIR_SLOW_UTF8_H
#define BYTEPAIR_SLOW_UTF8_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint8_t first_lead, last_lead, length, first_second, last_second;
} utf8_row;

static const utf8_row utf8_table[] = {
    {0x00, 0x7F, 1, 0x00, 0x00}, {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

/* The length of the character at `at`, which is before `end`, and its code point; 0 if it is none. */
static size_t slow_character(const uint8_t *at, const uint8_t *end, uint32_t *code) {
    for (size_t i = 0; i < sizeof utf8_table / sizeof *utf8_table; i++) {
        const utf8_row *row = &utf8_table[i];
        if (at[0] < row->first_lead || at[0] > row->last_lead) {
            continue;
        }
        if (end - at < row->length) {
            return 0;
        }
        *code = row->length == 1 ? at[0] : at[0] & (0x7Fu >> row->length);
        for (size_t j = 1; j < row->length; j++) {
            const uint8_t first = j == 1 ? row->first_second : 0x80;
            const uint8_t last = j == 1 ? row->last_second : 0xBF;
            if (at[j] < first || at[j] > last) {
                return 0;
            }
            *code = *code << 6 | (at[j] & 0x3F);
        }
        return row->length;
    }
    return 0;
}

static size_t slow_valid_utf8(const uint8_t *text, size_t size) {
    size_t at = 0, length;
    uint32_t code;
    while (at < size && (length = slow_character(text + at, text + size, &code)) > 0) {
        at += length;
    }
    return at;
}

#endif
