/* write_again.h - a message that was read, written again part by part. */
#ifndef TESTS_CLUSTER_WRITE_AGAIN_H
#define TESTS_CLUSTER_WRITE_AGAIN_H

#include "cluster/message.h"

/* Appends to *ret. False: out of memory, or there are not as many extensions as the message says.
 */
static inline bool write_again(const struct cluster_message *m, struct rd_buf *ret)
{
    struct rd_buf gossip = {0}, extensions = {0};
    struct cluster_message copy = *m;
    struct cluster_gossip entry;
    struct cluster_extension extension;
    size_t at = 0, n = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < m->n_gossip; i++) {
        cluster_gossip_at(m, i, &entry);
        ok = cluster_gossip_add(&gossip, &entry);
    }
    for (; ok && cluster_extension_next(m, &at, &extension); n++)
        ok = cluster_extension_add(&extensions, &extension);
    copy.gossip = rd_buf_slice(&gossip);
    copy.extensions = rd_buf_slice(&extensions);
    ok = ok && n == m->n_extensions && cluster_message_write(&copy, ret);
    rd_buf_done(&gossip);
    rd_buf_done(&extensions);
    return ok;
}

#endif
