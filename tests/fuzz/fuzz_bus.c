/* fuzz_bus.c - the reader of messages of the cluster bus takes any bytes. What it took is written
 * again, and read as the same.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cluster/write_again.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_bus: %s\n", what);
    abort();
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
        check(write_again(&m, &first), "cannot be written");
        check(cluster_message_read(&again, rd_buf_slice(&first), NULL), "cannot be read back");
        check(write_again(&again, &second), "cannot be written again");
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
