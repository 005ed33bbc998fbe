/* Texts made of an input: its bytes as they are, or a piece of text for each byte, which is UTF-8 and
   meets the alternatives of the patterns. */
#ifndef BYTEPAIR_TEXT_H
#define BYTEPAIR_TEXT_H

#include "fuzz.h"

#ifndef MOST_TEXT
#define MOST_TEXT 2048
#endif
enum { REPEAT = 0xC0 };

static const char *const pieces[] = {
    " ", "a", "e", "t", "s", "S", "A", "'", "'s", "'ll", "'RE", "'\xC5\xBF", "\n", "\r", "\t", "1",
    "23", "/", ".", "_", "-", "!?", "  ", "\r\n", " \n ", "th", "he", "in", "er", " the", " and",
    "ing", "low", "lower", "newest", "B", "V", "l", "d", "m", "re", "ve", "LL", "T", "D", "\x0B",
    "\x1C", "\x1F", "\x7F", "\x01", "0", "9",
    "\xC3\xA9",                        /* é */
    "\xC3\x89",                        /* É */
    "\xC2\xA0", "\xC2\x85", "\xE2\x80\x83", "\xE2\x80\xA8", "\xE3\x80\x80", /* white space */
    "\xCC\x81",                        /* a mark */
    "e\xCC\x81", "\xEF\xB8\x8F",       /* and one of three bytes */
    "\xC7\x85",                        /* a title-case letter */
    "\xCA\xB0",                        /* a modifier letter */
    "\xC5\xBF",                        /* the long s */
    "\xE4\xB8\xAD", "\xE6\x96\x87", "\xF0\xA0\x80\x80",                     /* letters of no case */
    "\xF0\x90\x90\x80", "\xF0\x90\x90\xA8",                                 /* and of four bytes */
    "\xD9\xA3", "\xC2\xB2", "\xF0\x9D\x9F\x98",                             /* numbers */
    "\xE2\x80\x99", "\xE2\x80\x9C", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF", /* none of these */
    " abcdefghijklmnopqrstuvwxyz", "extraordinarily considerable", "0123456789", "'s 't 'm 'd",
    "o", "n", "w", "h", "i", "b", "c", "f", "r", "x",
};
enum { PIECES = sizeof pieces / sizeof *pieces };

/* Writes up to MOST_TEXT bytes. From REPEAT on, a byte repeats the piece before it. */
static inline size_t make_text(input *in, bool raw, size_t input_bytes, uint8_t *text) {
    size_t size = 0;
    const char *piece = " ";
    while (in->left > 0 && input_bytes-- > 0) {
        const uint8_t byte = (uint8_t)take(in, 1);
        if (raw) {
            if (size < MOST_TEXT) {
                text[size++] = byte;
            }
            continue;
        }
        piece = byte < REPEAT ? pieces[byte % PIECES] : piece;
        for (size_t times = byte < REPEAT ? 1 : byte % REPEAT; times > 0; times--) {
            const size_t length = strlen(piece);
            if (size + length <= MOST_TEXT) {
                memcpy(text + size, piece, length);
                size += length;
            }
        }
    }
    return size;
}

#endif
