/* Large pages for large tables: a look-up in a table of 32 MB otherwise misses the cache of page
   addresses, which took 40 % of the time of encoding. */
#if defined(__linux__)
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include <sys/mman.h>
#endif

#include "pages.h"

#include <stdlib.h>

#define LARGE_PAGE (UINT64_C(1) << 21)

void bp_prefer_large_pages(void *memory, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (memory != NULL && size >= 2 * LARGE_PAGE) {
        const size_t before = (size_t)(-(uintptr_t)memory & (LARGE_PAGE - 1));
        const size_t length = (size_t)((size - before) & ~(LARGE_PAGE - 1));
        (void)madvise((uint8_t *)memory + before, length, MADV_HUGEPAGE); /* advice: may be ignored */
    }
#else
    (void)memory;
    (void)size;
#endif
}

void *bp_new_table(size_t slots, size_t slot_size) {
    void *table = calloc(slots, slot_size);
    bp_prefer_large_pages(table, slots * slot_size);
    return table;
}
