/* permute_impl.h - private to chunks/: an order that has little in common with the earlier one.
 *
 * The items that stay, in their new order, are divided into groups of up to 20. For each of them,
 * in the earlier order, the number of its group is stored in as many bits as that takes, and for
 * each group the number of its permutation, of 20! or fewer. So 2.6 million items take 20.1 bits
 * each; fewer than 19.9 are not possible.
 */
#ifndef CHUNKS_PERMUTE_IMPL_H
#define CHUNKS_PERMUTE_IMPL_H

#include "chunks/bytes_impl.h"
#include "chunks/order_impl.h"

bool chunks_permute_encode(const struct chunks_sequence *seq, struct rd_buf *ret,
                           struct rd_err *err);
/* Sets to->at[0 … to->n - 1]. The chunks of `fresh` have n_fresh new items. */
bool chunks_permute_decode(struct chunks_in *in, const struct chunks_places *old,
                           const struct chunks_table *fresh, uint64_t n_fresh,
                           struct chunks_places *to, struct rd_err *err);

#endif
