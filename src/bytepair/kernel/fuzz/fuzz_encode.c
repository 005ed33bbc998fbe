/* Encoding equals merging by the rule, one occurrence after the other, for texts, for texts cut
   elsewhere and for many texts; from memory too. Merges, ends, widths and rooms that contradict each
   other are refused. When an allocation fails, each in turn, that is the status, and the encoder
   encodes the next time.

   An input is: flags, pattern, the number of merges and the merges, then operations; see operate(). */
#include "fuzz.h"

#define BP_TINY 1
#include "../pages.c"
#include "../rules.c"
#include "../scan.c"
#include "../merge.c"
#include "../encode.c"

#include "slow_scan.h"
#define MOST_TEXT 600 /* more than is remembered; the slow encoding is of the third power */
#include "text.h"

enum { RAW = 1, FAILING = 2, ANY_IDS = 4, CUT = 8, WIDE = 16 };
enum { MOST_MERGES = 96, MOST_CHUNKS = 64, ALL_PAIRS = 65536 };
enum { ONE_TEXT, TEXTS, CHUNKS };
enum { MOST_REMEMBERED = (MOST_SLOTS + MOST_LONG_SLOTS) * 5 / 8 + 2 };

/* ---- merges ---- */

typedef struct {
    uint32_t *pairs;
    size_t number;
    size_t all_pairs; /* of bytes, in order, come first: none or ALL_PAIRS */
} merges;

static uint32_t take_id(input *in, size_t limit, uint64_t flags) {
    if (flags & ANY_IDS) {
        return (uint32_t)take(in, 4);
    }
    const uint64_t byte = take(in, 1);
    return byte < 0x80 ? (uint32_t)byte : (uint32_t)((limit - 1 - byte % 0x80) % limit);
}

static merges take_merges(input *in, uint64_t flags) {
    merges given = {NULL, 0, (flags & 0xF0) == WIDE ? ALL_PAIRS : 0};
    given.number = given.all_pairs + take_below(in, MOST_MERGES);
    given.pairs = exact(NULL, 8 * given.number);
    for (size_t i = 0; i < given.all_pairs; i++) {
        given.pairs[2 * i] = (uint32_t)i >> 8;
        given.pairs[2 * i + 1] = i & 255;
    }
    for (size_t i = 2 * given.all_pairs; i < 2 * given.number; i++) {
        given.pairs[i] = take_id(in, 256 + i / 2, flags);
    }
    return given;
}

/* The id that two become, or BP_NO_ID. */
static uint32_t merge_slowly(const merges *given, size_t number, uint32_t left, uint32_t right) {
    if (given->all_pairs > 0 && left < 256 && right < 256) {
        return 256 + (left << 8 | right);
    }
    for (size_t i = given->all_pairs; i < number; i++) {
        if (given->pairs[2 * i] == left && given->pairs[2 * i + 1] == right) {
            return (uint32_t)(256 + i);
        }
    }
    return BP_NO_ID;
}

static bool are_merges(const merges *given) {
    for (size_t i = given->all_pairs; i < given->number; i++) {
        const uint32_t left = given->pairs[2 * i], right = given->pairs[2 * i + 1];
        if (left >= 256 + i || right >= 256 + i ||
            merge_slowly(given, i, left, right) != BP_NO_ID) {
            return false;
        }
    }
    return true;
}

/* ---- the slow encoding ---- */

typedef struct {
    uint32_t ids[MOST_TEXT];
    size_t number;
} encoded;

static void encode_chunk_slowly(const merges *given, const uint8_t *chunk, size_t size,
                                encoded *out) {
    uint32_t *ids = out->ids + out->number;
    size_t number = size;
    for (size_t i = 0; i < size; i++) {
        ids[i] = chunk[i];
    }
    for (;;) {
        uint32_t lowest = BP_NO_ID;
        for (size_t i = 0; i + 1 < number; i++) {
            const uint32_t id = merge_slowly(given, given->number, ids[i], ids[i + 1]);
            lowest = id < lowest ? id : lowest;
        }
        if (lowest == BP_NO_ID) {
            break;
        }
        const uint32_t left = given->pairs[2 * (lowest - 256)];
        const uint32_t right = given->pairs[2 * (lowest - 256) + 1];
        size_t kept = 0;
        for (size_t i = 0; i < number; kept++) {
            const bool is_pair = i + 1 < number && ids[i] == left && ids[i + 1] == right;
            ids[kept] = is_pair ? lowest : ids[i];
            i += is_pair ? 2 : 1;
        }
        number = kept;
    }
    out->number += number;
}

static void encode_slowly(const merges *given, const bp_scanner *scanner, const uint8_t *text,
                          size_t size, encoded *out) {
    const uint8_t *at = text, *end = text + size;
    while (at < end) {
        const uint8_t *stop = scanner == NULL ? end : slow_chunk_end(scanner->pattern, at, end);
        encode_chunk_slowly(given, at, (size_t)(stop - at), out);
        at = stop;
    }
}

/* ---- operations ---- */

typedef struct {
    const merges *given;
    const bp_scanner *scanner;
    bp_encoder *encoder;
    uint64_t flags;
    /* of one operation */
    uint64_t kind;
    const uint8_t *text;
    size_t size, width, room, number;
    uint64_t ends[MOST_CHUNKS], id_ends[MOST_CHUNKS];
    void *ids;
    size_t written;
} operation;

static bp_status encode(operation *o) {
    memset(o->id_ends, 0xAA, sizeof o->id_ends);
    o->written = SIZE_MAX;
    if (o->kind == ONE_TEXT) {
        return bp_encode(o->encoder, o->text, o->size, o->ids, o->width, o->room, &o->written);
    }
    if (o->kind == CHUNKS) {
        return bp_encode_chunks(o->encoder, o->text, o->size, o->ends, o->number, o->ids, o->width,
                                o->room, &o->written);
    }
    const bp_status status = bp_encode_texts(o->encoder, o->text, o->size, o->ends, o->number,
                                             o->ids, o->width, o->room, o->id_ends);
    if (status == BP_OK) {
        o->written = o->number > 0 ? (size_t)o->id_ends[o->number - 1] : 0;
    }
    return status;
}

static bp_status expected_status(const operation *o) {
    if ((o->width != 2 && o->width != 4) || (o->width == 2 && o->given->number > 65536 - 256)) {
        return BP_BAD_INPUT;
    }
    if (o->room < o->size + BP_SLACK) {
        return BP_NO_ROOM;
    }
    uint64_t start = 0;
    for (size_t i = 0; i < o->number && o->kind != ONE_TEXT; start = o->ends[i++]) {
        if (o->ends[i] < start || o->ends[i] > o->size || (o->kind == CHUNKS && o->ends[i] == start)) {
            return BP_BAD_INPUT;
        }
    }
    return o->kind == ONE_TEXT || start == o->size ? BP_OK : BP_BAD_INPUT;
}

/* False if it is not said what the ids are, since a text that is to be cut is no UTF-8. */
static bool expect(const operation *o, encoded *expected, uint64_t *id_ends) {
    const size_t texts = o->kind == ONE_TEXT ? 1 : o->number;
    const bp_scanner *scanner = o->kind == CHUNKS ? NULL : o->scanner;
    size_t start = 0;
    expected->number = 0;
    for (size_t i = 0; i < texts; i++) {
        const size_t end = o->kind == ONE_TEXT ? o->size : (size_t)o->ends[i];
        if (scanner != NULL && slow_valid_utf8(o->text + start, end - start) != end - start) {
            return false;
        }
        encode_slowly(o->given, scanner, o->text + start, end - start, expected);
        id_ends[i] = expected->number;
        start = end;
    }
    return true;
}

static void check_ids(const operation *o, const encoded *expected, const uint64_t *id_ends) {
    CHECK(o->written == expected->number);
    CHECK(o->kind != TEXTS || memcmp(o->id_ends, id_ends, 8 * o->number) == 0);
    for (size_t i = 0; i < expected->number; i++) {
        uint16_t narrow;
        uint32_t wide;
        memcpy(&narrow, (const char *)o->ids + 2 * i, 2);
        memcpy(&wide, (const char *)o->ids + (o->width == 4 ? 4 * i : 0), 4);
        CHECK((o->width == 2 ? narrow : wide) == expected->ids[i]);
    }
}

/* Kind, width, how much room is missing, the ends, and a text. */
static void take_operation(input *in, operation *o, uint8_t *text) {
    const uint64_t choice = take(in, 1);
    o->kind = choice % 4 % 3;
    o->width = choice & 0x40 ? (size_t)take(in, 1) : choice & 0x80 ? 2 : 4;
    const size_t missing = choice & 0x20 ? 1 : 0;
    o->number = o->kind == ONE_TEXT ? 0 : take_below(in, MOST_CHUNKS);
    uint64_t end = 0;
    for (size_t i = 0; i < o->number; i++) {
        end = choice & 0x10 ? take(in, 8) : end + take(in, 1);
        o->ends[i] = end;
    }
    const size_t input_bytes = take(in, 1);
    o->size = make_text(in, o->flags & RAW, input_bytes, text);
    if (o->number > 0 && !(choice & 0x10)) { /* within the text, and to its end */
        for (size_t i = 0; i < o->number; i++) {
            o->ends[i] = o->ends[i] < o->size ? o->ends[i] : o->size;
        }
        o->ends[o->number - 1] = o->size;
    }
    o->room = o->size + BP_SLACK - missing;
    o->text = exact(text, o->size);
    o->ids = exact(NULL, o->room * (o->width == 2 || o->width == 4 ? o->width : 1));
}

static void operate(operation *o, input *in) {
    static uint8_t text[MOST_TEXT];
    static encoded expected;
    static uint64_t id_ends[MOST_CHUNKS];
    take_operation(in, o, text);
    const bp_status status = expected_status(o);
    const bool is_known = status == BP_OK && expect(o, &expected, id_ends);
    bp_status found = BP_NO_MEMORY;
    for (failing = 1; o->flags & FAILING && status == BP_OK && found != BP_OK; failing++) {
        allocations = 0;
        found = encode(o);
        CHECK(found == (allocations >= failing ? BP_NO_MEMORY : BP_OK));
        CHECK(found == BP_OK || o->written == SIZE_MAX);
    }
    failing = 0;
    for (int again = 0; again < 2; again++) { /* the second time from memory, if it is remembered */
        CHECK(encode(o) == status);
        CHECK(status == BP_OK || o->written == SIZE_MAX);
        if (is_known) {
            check_ids(o, &expected, id_ends);
        }
    }
    CHECK(bp_encoder_remembers(o->encoder) <= MOST_REMEMBERED);
    discard((void *)(uintptr_t)o->text);
    discard(o->ids);
}

static bp_encoder *new_encoder(const bp_scanner *scanner, const merges *given, uint64_t flags) {
    bp_encoder *encoder = NULL;
    allocations = 0;
    const bp_status status = bp_encoder_new(scanner, given->pairs, given->number, &encoder);
    CHECK(status == (are_merges(given) ? BP_OK : BP_BAD_INPUT));
    CHECK((encoder != NULL) == (status == BP_OK));
    const size_t all = flags & FAILING && status == BP_OK ? allocations : 0;
    for (failing = 1; failing <= all; failing++) {
        bp_encoder *none = NULL;
        allocations = 0;
        const size_t before = held;
        CHECK(bp_encoder_new(scanner, given->pairs, given->number, &none) == BP_NO_MEMORY);
        CHECK(none == NULL && held == before);
    }
    failing = 0;
    return encoder;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static operation o;
    input in = {data, size};
    o.flags = take(&in, 1);
    const uint64_t pattern = take(&in, 1);
    o.scanner = o.flags & CUT ? known_scanner(pattern) : NULL;
    const merges given = take_merges(&in, o.flags);
    o.given = &given;
    o.encoder = new_encoder(o.scanner, &given, o.flags);
    while (o.encoder != NULL && in.left > 0) {
        operate(&o, &in);
    }
    bp_encoder_free(o.encoder);
    CHECK(held == 0);
    discard(given.pairs);
    bp_encoder *none = NULL;
    CHECK(bp_encoder_new(NULL, NULL, SIZE_MAX, &none) == BP_TOO_LARGE && none == NULL);
    return 0;
}
