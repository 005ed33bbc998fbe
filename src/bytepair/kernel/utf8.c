/* Whether bytes are UTF-8. */
#include "bytepair.h"
#include "keys.h"

static inline int continues(uint8_t byte) {
    return (byte & 0xC0) == 0x80;
}

/* The length of the character at `at`, which is not ASCII; 0 if it is none. */
static inline size_t character(const uint8_t *at, size_t left) {
    const uint8_t lead = at[0];
    if (lead >= 0xE0 && lead < 0xF0 && left > 2 && continues(at[1]) && continues(at[2])) {
        const uint32_t code = (lead & 0x0Fu) << 12 | (at[1] & 0x3Fu) << 6;
        return code >= 0x800 && code - 0xD800 >= 0x800 ? 3 : 0;
    }
    if (lead >= 0xC2 && lead < 0xE0 && left > 1 && continues(at[1])) {
        return 2;
    }
    if (lead >= 0xF0 && lead < 0xF5 && left > 3 && continues(at[1]) && continues(at[2]) &&
        continues(at[3])) {
        const uint32_t code = (lead & 0x07u) << 18 | (at[1] & 0x3Fu) << 12;
        return code >= 0x10000 && code < 0x110000 ? 4 : 0;
    }
    return 0;
}

size_t bp_valid_utf8(const uint8_t *text, size_t size) {
    size_t at = 0;
    while (at < size) {
        if (text[at] >= 0x80) {
            const size_t length = character(text + at, size - at);
            if (length == 0) {
                break;
            }
            at += length;
            continue;
        }
        while (size - at >= 16 &&
               ((bp_load8(text + at) | bp_load8(text + at + 8)) & UINT64_C(0x8080808080808080)) == 0) {
            at += 16;
        }
        while (at < size && text[at] < 0x80) {
            at++;
        }
    }
    return at;
}
