/* Scanning any text, in blocks that end anywhere, finds the chunks of the regular expression; a safe
   cut changes none of them; other bytes are cut without a gap; scanners of any ranges are refused or
   safe.

   An input is: flags, pattern, where blocks end, room, where a safe cut is sought, ranges if they are
   its own, then the text. */
#include "fuzz.h"

#include "../rules.c"
#include "../scan.c"

#include "slow_scan.h"
#include "text.h"

enum { RAW = 1, OWN_RANGES = 2, FAILING = 4 };
enum { MOST_OWN_RANGES = 24, MOST_ROOM = 64 };

/* ---- scanners ---- */

static bp_status expected_status(uint64_t pattern, const bp_range *ranges, size_t number) {
    for (size_t i = 0; i < number; i++) {
        const uint32_t class = ranges[i].klass;
        const bool is_of_o200k = class == BP_UPPER || class == BP_LOWER || class == BP_MARK;
        if (ranges[i].first > ranges[i].last || ranges[i].last > 0x10FFFF || class > BP_LINE ||
            (is_of_o200k && pattern != BP_O200K)) {
            return BP_BAD_INPUT;
        }
    }
    return pattern > BP_O200K ? BP_BAD_INPUT : BP_OK;
}

/* NULL if it was refused, as it had to be. */
static bp_scanner *own_scanner(input *in, uint64_t pattern, bool is_failing) {
    bp_range ranges[MOST_OWN_RANGES];
    const size_t number = take_below(in, MOST_OWN_RANGES);
    for (size_t i = 0; i < number; i++) {
        ranges[i].first = (uint32_t)take(in, 3) & 0x1FFFFF;
        ranges[i].last = ranges[i].first + (uint32_t)take(in, 2);
        ranges[i].klass = take(in, 1) & 0xF;
    }
    bp_scanner *scanner = NULL;
    const size_t before = held;
    allocations = 0;
    const bp_status status = bp_scanner_new((bp_pattern)pattern, ranges, number, &scanner);
    CHECK(status == expected_status(pattern, ranges, number));
    CHECK((scanner != NULL) == (status == BP_OK));
    const size_t all = is_failing && status == BP_OK ? allocations : 0;
    for (failing = 1; failing <= all; failing++) {
        bp_scanner *none = NULL;
        allocations = 0;
        CHECK(bp_scanner_new((bp_pattern)pattern, ranges, number, &none) == BP_NO_MEMORY);
        CHECK(none == NULL);
    }
    failing = 0;
    CHECK(held == before + (scanner != NULL ? 2 : 0));
    return scanner;
}

/* ---- scanning ---- */

typedef struct {
    size_t starts[MOST_TEXT + 1], number;
} chunks;

/* The blocks end `step` bytes further each; what is left of one is scanned with the next. */
static void scan_in_blocks(const bp_scanner *scanner, const uint8_t *text, size_t size, size_t step,
                           size_t room, chunks *found) {
    static const uint8_t behind[] = "leS \n1'\xBF"; /* a chunk could go on with it */
    uint32_t *starts = exact(NULL, (room + 128) * sizeof *starts);
    size_t at = 0;
    found->number = 0;
    for (size_t end = 0; at < size;) {
        end = end + step < size ? end + step : size;
        uint8_t *block = exact(NULL, end - at + BP_PADDING);
        memcpy(block, text + at, end - at);
        memset(block + (end - at), behind[step % 8], BP_PADDING);
        const uint8_t *stop = block;
        size_t number;
        do {
            const uint8_t *from = stop;
            stop = bp_scan(scanner, block, from, block + (end - at), end == size, starts, room,
                           &number);
            CHECK(number <= room + 63 && block + starts[number] == stop);
            CHECK(number > 0 || stop == from);
            for (size_t i = 0; i < number; i++) {
                CHECK(starts[i] < starts[i + 1] && (i > 0 || block + starts[0] == from));
                found->starts[found->number++] = at + starts[i];
            }
        } while (number > 0);
        at += (size_t)(stop - block);
        CHECK(at < size || end == size);
        discard(block);
    }
    found->starts[found->number] = size;
    discard(starts);
}

static void scan_slowly(bp_pattern pattern, const uint8_t *text, size_t size, chunks *found) {
    found->number = 0;
    for (const uint8_t *at = text; at < text + size;) {
        found->starts[found->number++] = (size_t)(at - text);
        at = slow_chunk_end(pattern, at, text + size);
    }
    found->starts[found->number] = size;
}

/* ---- cutting ---- */

/* The last place before `end` where an ASCII letter stands before a space or a line end. */
static size_t plain_cut(const uint8_t *text, size_t end) {
    for (size_t at = end; at-- > 1;) {
        if ((text[at] == ' ' || text[at] == '\n') && is_ascii_letter(text[at - 1])) {
            return at;
        }
    }
    return 0;
}

/* A cut found in [begin, end), without knowing the rest, cuts no chunk of the whole or of a part. */
static void check_cut(const bp_scanner *scanner, const uint8_t *text, size_t size, size_t begin,
                      size_t end, const chunks *expected) {
    static chunks part;
    uint8_t *known = exact(text + begin, end - begin);
    const size_t cut = bp_safe_cut(scanner, known, end - begin);
    CHECK(cut < end - begin || cut == 0);
    CHECK(cut >= plain_cut(known, end - begin));
    if (cut > 0) {
        size_t chunk = 0;
        while (expected->starts[chunk] < begin + cut) {
            chunk++;
        }
        CHECK(expected->starts[chunk] == begin + cut);
        scan_slowly(scanner->pattern, text, begin + cut, &part);
        CHECK(part.number == chunk);
        CHECK(memcmp(part.starts, expected->starts, chunk * sizeof *part.starts) == 0);
        scan_slowly(scanner->pattern, text + begin + cut, size - begin - cut, &part);
        CHECK(part.number == expected->number - chunk);
    }
    discard(known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t text[MOST_TEXT];
    static chunks found, expected;
    input in = {data, size};
    const uint64_t flags = take(&in, 1), number = take(&in, 1);
    const size_t step = 1 + take_below(&in, 300), room = 1 + take_below(&in, MOST_ROOM);
    const size_t begin = take_below(&in, MOST_TEXT), end = take_below(&in, MOST_TEXT);
    bp_scanner *own = NULL;
    if (flags & OWN_RANGES && (own = own_scanner(&in, number % 8, flags & FAILING)) == NULL) {
        return 0;
    }
    const bp_scanner *scanner = own != NULL ? own : known_scanner(number);
    const size_t length = make_text(&in, flags & RAW, SIZE_MAX, text);
    scan_in_blocks(scanner, text, length, step, room, &found);
    if (own == NULL && slow_valid_utf8(text, length) == length) {
        scan_slowly(scanner->pattern, text, length, &expected);
        CHECK(found.number == expected.number);
        CHECK(memcmp(found.starts, expected.starts, found.number * sizeof *found.starts) == 0);
        size_t first = length > 0 ? begin % length : 0;
        while (first < length && (text[first] & 0xC0) == 0x80) {
            first++;
        }
        check_cut(scanner, text, length, first, first + (end % (length - first + 1)), &expected);
        check_cut(scanner, text, length, 0, length, &expected);
    } else {
        uint8_t *copy = exact(text, length);
        CHECK(bp_safe_cut(scanner, copy, length) <= length);
        discard(copy);
    }
    CHECK(bp_safe_cut(scanner, NULL, 0) == 0);
    bp_scanner_free(own);
    return 0;
}
