/* Memory by number and size of elements, checked: what cannot be had is NULL, never a crash. */
#ifndef BYTEPAIR_MEMORY_H
#define BYTEPAIR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* True if `number` elements of `size` bytes are more than a size_t can count. */
static inline bool bp_size_overflows(size_t number, size_t size)
{
    return size != 0 && number > SIZE_MAX / size;
}

/* NULL on failure only, also for no elements. Contents undefined. */
static inline void *bp_allocate(size_t number, size_t size)
{
    if (bp_size_overflows(number, size))
        return NULL;
    return malloc(number * size != 0 ? number * size : 1);
}

/* The same, all zero: large arrays come from the system as zero pages, which cost nothing until
   they are touched. */
static inline void *bp_allocate_zeroed(size_t number, size_t size)
{
    if (bp_size_overflows(number, size))
        return NULL;
    return calloc(number != 0 ? number : 1, size);
}

/* `array` with room for `needed` elements at least, and for half as many again as it had, so that
   growing one by one is linear; *room says how many. NULL on failure: then `array` and *room are
   as they were. An array of no room may be NULL. */
static inline void *bp_grow(void *array, size_t *room, size_t needed, size_t size)
{
    size_t larger = *room <= SIZE_MAX / 3 * 2 ? *room + *room / 2 : SIZE_MAX;
    if (larger < needed)
        larger = needed;
    if (bp_size_overflows(larger, size))
        return NULL;
    void *grown = realloc(array, larger * size != 0 ? larger * size : 1);
    if (grown != NULL)
        *room = larger;
    return grown;
}

#endif
