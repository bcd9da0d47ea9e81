/* rewrite_impl.h - private to sweep.c and rewrite.c. */
#ifndef CHUNKS_REWRITE_IMPL_H
#define CHUNKS_REWRITE_IMPL_H

#include "chunks/sweep.h"
#include "chunks/usage_impl.h"

/* Copies what is needed of packs that are mostly waste to new packs. */
bool chunks_rewrite(struct chunks_sweep *s, struct rd_err *err);

#endif
