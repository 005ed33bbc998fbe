/* bp_valid_utf8 equals a decoder that goes by the table, and reads nothing outside the text.

   An input is: how many letters stand before the text and after it, then the text. */
#include "fuzz.h"

#include "../utf8.c"

#include "slow_utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    const size_t before = take_below(&in, 64), after = take_below(&in, 64);
    const size_t whole = before + in.left + after;
    uint8_t *text = exact(NULL, whole);
    memset(text, 'a', whole);
    if (in.left > 0) {
        memcpy(text + before, in.at, in.left);
    }
    const size_t valid = bp_valid_utf8(text, whole);
    CHECK(valid == slow_valid_utf8(text, whole));
    CHECK(bp_valid_utf8(text, valid) == valid);
    for (size_t end = before; end < whole - after; end++) { /* wherever a text ends */
        CHECK(bp_valid_utf8(text, end) == slow_valid_utf8(text, end));
    }
    CHECK(bp_valid_utf8(NULL, 0) == 0);
    discard(text);
    return 0;
}
