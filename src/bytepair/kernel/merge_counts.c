/* Merging sorted counts.

   The heads of the runs play a tournament: each inner node of a tree keeps the loser of the match
   played there, so the next winner takes one comparison a level. Most are decided by the first
   eight bytes, which are kept beside each head as a number. */
#include "bytepair.h"
#include "memory.h"
#include "order.h"

typedef struct {
    uint64_t leading;
    const uint8_t *chunk; /* NULL: none, which is after every chunk */
    size_t size;
} head;

typedef struct {
    head *heads;
    size_t *losers; /* of node i, from 1 on */
    size_t number;
} tournament;

static inline int is_before(const head *a, const head *b) {
    if (a->leading != b->leading) {
        return a->leading < b->leading;
    }
    if (a->chunk == NULL || b->chunk == NULL) {
        return a->chunk != NULL;
    }
    return bp_compare_chunks(a->chunk, a->size, b->chunk, b->size) < 0;
}

static inline int is_same(const head *a, const head *b) {
    return a->leading == b->leading && a->size == b->size && a->chunk != NULL &&
           b->chunk != NULL && memcmp(a->chunk, b->chunk, a->size) == 0;
}

/* Makes the first chunk that is not taken the head. */
static bp_status look_at(head *found, const bp_run *run) {
    if (run->taken >= run->number) {
        *found = (head){.leading = UINT64_MAX};
        return BP_OK;
    }
    const uint64_t start = run->taken == 0 ? run->origin : run->ends[run->taken - 1];
    const uint64_t end = run->ends[run->taken];
    if (start < run->origin || end <= start || end - run->origin > run->size ||
        run->counts[run->taken] == 0) {
        return BP_BAD_INPUT;
    }
    const uint8_t *chunk = run->chunks + (start - run->origin);
    const size_t size = (size_t)(end - start);
    *found = (head){bp_leading_bytes(chunk, size), chunk, size};
    return BP_OK;
}

/* The winner among the leaves below a node; leaf `number` + i is run i. */
static size_t play(const tournament *games, size_t node) {
    if (node >= games->number) {
        return node - games->number;
    }
    const size_t left = play(games, 2 * node), right = play(games, 2 * node + 1);
    const int is_right = is_before(&games->heads[right], &games->heads[left]);
    games->losers[node] = is_right ? left : right;
    return is_right ? right : left;
}

/* The new winner after the old one has another head. */
static size_t play_again(const tournament *games, size_t winner) {
    for (size_t node = (winner + games->number) / 2; node > 0; node /= 2) {
        const size_t other = games->losers[node];
        if (is_before(&games->heads[other], &games->heads[winner])) {
            games->losers[node] = winner;
            winner = other;
        }
    }
    return winner;
}

/* Takes the winner's chunk from every run that has it; *winner is then that of the next chunk. */
static bp_status add_up(const tournament *games, bp_run *runs, bp_merged *into, size_t *winner,
                        int *is_window_taken) {
    head taken = games->heads[*winner];
    uint64_t sum = 0;
    memcpy(into->chunks + into->size, taken.chunk, taken.size);
    taken.chunk = into->chunks + into->size;
    do {
        bp_run *run = &runs[*winner];
        head *next = &games->heads[*winner];
        const uint64_t count = run->counts[run->taken++];
        if (count > UINT64_MAX - sum) {
            return BP_TOO_LARGE;
        }
        sum += count;
        const bp_status status = look_at(next, run);
        if (status != BP_OK) {
            return status;
        }
        if (!is_before(&taken, next)) {
            return BP_BAD_INPUT;
        }
        *is_window_taken |= next->chunk == NULL && !run->last;
        *winner = play_again(games, *winner);
    } while (is_same(&games->heads[*winner], &taken));
    into->size += taken.size;
    into->ends[into->number] = into->origin + into->size;
    into->counts[into->number++] = sum;
    return BP_OK;
}

static bp_status merge(const tournament *games, bp_run *runs, bp_merged *into, size_t *culprit) {
    for (*culprit = 0; *culprit < games->number; ++*culprit) {
        const bp_run *run = &runs[*culprit];
        const bp_status status = look_at(&games->heads[*culprit], run);
        if (status != BP_OK || (run->taken >= run->number && !run->last)) {
            return BP_BAD_INPUT;
        }
    }
    int is_window_taken = 0;
    *culprit = play(games, 1);
    while (!is_window_taken && games->heads[*culprit].chunk != NULL) {
        if (into->number == into->room ||
            games->heads[*culprit].size > into->size_room - into->size) {
            return into->number == 0 ? BP_NO_ROOM : BP_OK;
        }
        const bp_status status = add_up(games, runs, into, culprit, &is_window_taken);
        if (status != BP_OK) {
            return status;
        }
    }
    return BP_OK;
}

bp_status bp_counts_merge(bp_run *runs, size_t number, bp_merged *into, size_t *culprit) {
    if (number == 0) {
        return BP_OK;
    }
    tournament games = {
        .heads = bp_allocate(number, sizeof *games.heads),
        .losers = bp_allocate(number, sizeof *games.losers),
        .number = number,
    };
    bp_status status = BP_NO_MEMORY;
    if (games.heads != NULL && games.losers != NULL) {
        status = merge(&games, runs, into, culprit);
    }
    free(games.heads);
    free(games.losers);
    return status;
}
