/* fuzz_bus.c - the reader of messages of the cluster bus takes any bytes. What it took is written
 * again, and read as the same.
 */
#include "cluster/message.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_bus: %s\n", what);
    abort();
}

static void write_again(const struct cluster_message *m, struct rd_buf *ret)
{
    struct rd_buf gossip = {0}, extensions = {0};
    struct cluster_message copy = *m;
    struct cluster_gossip entry;
    struct cluster_extension extension;
    size_t at = 0, n = 0;
    for (size_t i = 0; i < m->n_gossip; i++) {
        cluster_gossip_at(m, i, &entry);
        check(cluster_gossip_add(&gossip, &entry), "out of memory");
    }
    for (; cluster_extension_next(m, &at, &extension); n++)
        check(cluster_extension_add(&extensions, &extension), "out of memory");
    check(n == m->n_extensions, "number of extensions");
    copy.gossip = rd_buf_slice(&gossip);
    copy.extensions = rd_buf_slice(&extensions);
    check(cluster_message_write(&copy, ret), "out of memory");
    rd_buf_done(&gossip);
    rd_buf_done(&extensions);
}

static void one(struct rd_slice bytes)
{
    struct cluster_message m, again;
    struct rd_buf first = {0}, second = {0};
    struct rd_err err = {0};
    bool ok = cluster_message_read(&m, bytes, &err);
    check(ok == (err.code == RD_ERR_OK), "failure without an error");
    check(ok || err.offset <= bytes.len, "place of an error");
    if (ok) {
        write_again(&m, &first);
        check(cluster_message_read(&again, rd_buf_slice(&first), NULL), "cannot be read back");
        write_again(&again, &second);
        check(rd_slice_eq(rd_buf_slice(&first), rd_buf_slice(&second)), "other when read back");
    }
    rd_buf_done(&first);
    rd_buf_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rd_slice rest = rd_slice(data, size);
    size_t len;
    while (cluster_message_frame(rest, &len, NULL) == CLUSTER_FRAME_READY) {
        one(rd_slice(rest.ptr, len));
        rest = rd_slice(rest.ptr + len, rest.len - len);
    }
    one(rest);
    return 0;
}
