/* Internal to the kernel. */
#ifndef BYTEPAIR_PAGES_H
#define BYTEPAIR_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* Memory, not used yet, that will be looked up all over. NULL is allowed. */
void bp_prefer_large_pages(void *memory, size_t size);

/* A table of empty slots, all zero; NULL if it cannot be had. */
void *bp_new_table(size_t slots, size_t slot_size);

#endif
